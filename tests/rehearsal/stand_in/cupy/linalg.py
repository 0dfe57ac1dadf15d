"""Linear algebra of the device."""

import numpy as np

from cupy._names import functions

globals().update(functions("linalg", np.linalg))
