"""Several models: how many there are, and which frame shows which."""
