"""How good a result is, from the data alone: half sets, agreement, coverage, errors."""
