"""The performance model (what a run would need on many ranks) and the weather (what its ranks have done)."""
