"""Methods that turn patterns into an intensity: the loop of slicing, scoring, weighing and merging."""
