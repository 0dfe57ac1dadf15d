"""Find the shots that met a particle, and judge the size and kind of each hit."""
