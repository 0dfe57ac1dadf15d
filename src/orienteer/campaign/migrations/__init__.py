"""The steps from one layout of the tables to the next, one file each; released steps never change."""
