"""A single-particle experiment made of photons that never flew."""
