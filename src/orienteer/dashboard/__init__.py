"""A web page about runs, while they go and after."""
