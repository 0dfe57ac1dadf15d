"""From a stream of events to a growing map, in one folder."""
