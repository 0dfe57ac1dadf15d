"""How well two volumes agree: shells, correlations, alignment."""
