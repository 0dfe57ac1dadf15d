"""From the sums of merged frames to models of the intensity, relative to its radial mean."""
