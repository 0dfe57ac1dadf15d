"""Slices of a volume at many orientations, and slices put back into it: the two are each other's adjoint."""
