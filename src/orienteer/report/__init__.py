"""One page that tells everything about a run, and files that open it elsewhere."""
