"""From deposits to models of the intensity, relative to its radial mean."""
