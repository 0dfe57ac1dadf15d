"""What a run would need on many ranks, and what its ranks have done: the performance model, the weather."""
