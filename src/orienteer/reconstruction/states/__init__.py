"""Several states: how many models there are, and which frame shows which."""
