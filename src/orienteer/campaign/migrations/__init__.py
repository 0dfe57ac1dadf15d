"""The way from one layout of the tables to the next, one file per step; what is released never changes."""
