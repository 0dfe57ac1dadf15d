"""From models and frames to responsibilities, poses and deposits."""
