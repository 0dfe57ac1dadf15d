"""The orienteer command."""
