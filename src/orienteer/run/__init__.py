"""The settings of a run, joined."""
