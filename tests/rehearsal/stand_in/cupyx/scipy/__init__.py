"""Functions of SciPy on the device, as far as they are used."""
