"""Batch jobs: scripts from the template of a site, their state in Slurm, an environment to send along."""
