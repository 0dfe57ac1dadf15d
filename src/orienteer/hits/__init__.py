"""Which shots have met a particle, and what kind of one."""
