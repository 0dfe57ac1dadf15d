"""A reconstruction that grows with its data."""
