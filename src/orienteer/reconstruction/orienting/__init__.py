"""From models and frames to responsibilities, poses, and the sums that new models are made of."""
