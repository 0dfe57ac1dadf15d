"""Simulate a single-particle experiment: frames with Poisson noise, imperfections and known truth."""
