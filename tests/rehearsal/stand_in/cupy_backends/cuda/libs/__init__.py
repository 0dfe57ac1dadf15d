"""The part of CuPy that calls the libraries of CUDA."""
