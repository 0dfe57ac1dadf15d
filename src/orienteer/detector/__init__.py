"""Where the pixels are, how the beam lights them, and which of them may be used."""
