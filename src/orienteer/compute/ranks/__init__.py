"""Ranks: processes that share the work of one run, and how they speak to each other."""
