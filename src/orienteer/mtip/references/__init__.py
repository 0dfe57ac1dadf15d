"""Slices that many ranks need: made by each, or made once and kept in memory, on a node or on disk."""
