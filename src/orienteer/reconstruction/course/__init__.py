"""Stages, starts, and when a run is over."""
