"""What is unknown besides orientations: fluence, background, noise, junk."""
