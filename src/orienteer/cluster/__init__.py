"""Batch jobs: scripts from the template of a site, what Slurm says of them, an environment to send."""
