"""From frames in unknown orientations to an intensity: the loop of slicing, scoring, weighing and merging."""
