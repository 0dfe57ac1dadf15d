"""Events as they come: streams, growing files, facilities."""
