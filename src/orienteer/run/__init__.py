"""A run: its settings joined, and the directory that is all of its state."""
