"""How good a result is, judged by the data alone: half sets, agreement, coverage, errors."""
