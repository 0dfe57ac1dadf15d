"""Multi-tiered iterative phasing: slices of an autocorrelation, and its least-squares merge from frames."""
