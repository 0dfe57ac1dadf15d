"""From scores to responsibilities: how much each orientation answers for each frame."""
