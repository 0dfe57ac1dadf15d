"""Fourier transforms with SciPy's options."""

import scipy.fft
from cupy.fft import contiguous

globals().update(contiguous("scipy.fft", scipy.fft))
