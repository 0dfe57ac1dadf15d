"""Converts what a detector reads out to photons."""
