"""Ranks: processes that share the work of one run, and how they communicate."""
