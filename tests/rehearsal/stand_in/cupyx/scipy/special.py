"""Special functions of the device."""

import scipy.special
from cupy._ufunc import ufuncs

globals().update(ufuncs("scipy.special", scipy.special))
