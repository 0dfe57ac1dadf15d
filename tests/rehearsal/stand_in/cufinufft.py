"""Non-uniform transforms of arrays of the device, done by finufft."""

from typing import Any

import finufft
import numpy as np
from cupy._strict import has_device_array, inside, outside


class Plan:
    """As cufinufft's; its results are arrays of the device."""

    def __init__(
        self, nufft_type: int, n_modes_or_dim: Any, n_trans: int = 1, eps: float = 1e-6, isign: Any = None,
        dtype: Any = "complex64", **options: Any,
    ) -> None:  # fmt: skip
        known = {key: value for key, value in options.items() if not key.startswith("gpu_")}
        self.dtype = np.dtype(dtype)
        self._plan = finufft.Plan(nufft_type, n_modes_or_dim, n_trans, eps, isign, self.dtype.name, **known)

    def setpts(self, *points: Any) -> None:
        for each in points:
            _expect(each)
            if each.dtype != self.dtype.type(0).real.dtype:
                raise TypeError(f"points are {each.dtype}, but the plan is {self.dtype}")
        # Kept, as the library keeps their addresses.
        self._points = [inside(each, "setpts").copy() for each in points]
        self._plan.setpts(*self._points)

    def execute(self, data: Any, out: Any = None) -> Any:
        _expect(data)
        if data.dtype != self.dtype:
            raise TypeError(f"data are {data.dtype}, but the plan is {self.dtype}")
        found = self._plan.execute(np.array(inside(data, "execute")))
        if out is None:
            return outside(found)
        inside(out, "execute")[...] = found
        return out


def _expect(array: Any) -> None:
    if not has_device_array(array):
        raise TypeError(f"cufinufft needs arrays of the device, not {type(array)}")
    if not array.flags.c_contiguous:
        raise TypeError("cufinufft needs contiguous arrays")
