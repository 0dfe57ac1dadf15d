"""Rotations of the particle: quaternions, point groups and grids over SO(3)."""
