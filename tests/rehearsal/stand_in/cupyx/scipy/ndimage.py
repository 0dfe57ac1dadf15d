"""Images of the device."""

from typing import Any

import scipy.ndimage
from cupy._names import functions

globals().update(functions("scipy.ndimage", scipy.ndimage))


def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """The number of pieces is a plain number of Python."""
    from cupy._strict import inside, outside

    labels, n = scipy.ndimage.label(inside(input, "label"), inside(structure, "label"))
    return outside(labels), int(n)
