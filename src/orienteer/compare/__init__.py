"""How alike two volumes are: shells, correlations, alignment."""
