"""A web page about runs, during and after them."""
