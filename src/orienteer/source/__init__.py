"""Patterns and the files they come from."""
