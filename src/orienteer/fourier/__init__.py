"""Transforms of compact objects, sampled at any point to a stated accuracy."""
