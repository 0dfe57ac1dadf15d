"""From |F|^2 to density: phase retrieval from many starts, and how far to trust it."""
