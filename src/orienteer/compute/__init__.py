"""Arrays on any device, kernels, and files that are never half written."""
