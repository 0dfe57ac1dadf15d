"""The other unknowns besides orientations: fluence, background, noise, junk."""
