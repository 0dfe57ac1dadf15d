"""Pictures of detectors, patterns and volumes; never imported by the science."""
