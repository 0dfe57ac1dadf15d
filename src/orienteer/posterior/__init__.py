"""From scores to responsibilities: the probabilities of the orientations of each frame."""
