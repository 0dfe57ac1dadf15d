"""What a beam time has done, in one database."""
