"""Pictures of detectors, patterns, volumes and runs; the scientific code never imports them."""
