"""Where CrystFEL panels lie in the stored data: each is a slab of a data block, put into one flat frame."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from orienteer.detector.crystfel_syntax import Directive
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.errors import FileError

Need = Callable[[str, str], Directive]


@dataclass(frozen=True)
class StoredPlace:
    """The slab of a data block that holds a panel.

    data : location of the block in the data files.
    fixed : index on each axis, None on the slow and the fast one; the event axis is left out.
    slow_axis, fast_axis : their places among these axes.
    min_ss, min_fs : first index on the slow and the fast axis.
    shape : (n_slow, n_fast).
    """

    data: str
    fixed: tuple[int | None, ...]
    slow_axis: int
    fast_axis: int
    min_ss: int
    min_fs: int
    shape: tuple[int, int]

    def first_index(self) -> tuple[int, ...]:
        """Index of the panel's first pixel on each axis."""
        starts = {self.slow_axis: self.min_ss, self.fast_axis: self.min_fs}
        return tuple(starts.get(axis, index or 0) for axis, index in enumerate(self.fixed))

    def end(self) -> tuple[int, ...]:
        """One past the panel's last pixel on each axis."""
        lengths = {self.slow_axis: self.shape[0], self.fast_axis: self.shape[1]}
        return tuple(first + lengths.get(axis, 1) for axis, first in enumerate(self.first_index()))


def stored_place(name: str, settings: Mapping[str, Directive], need: Need, data: str) -> StoredPlace:
    """The slab of one panel, from ``min_fs`` ... ``max_ss`` and the ``dim`` lines."""
    bounds = {}
    for key in ("min_fs", "max_fs", "min_ss", "max_ss"):
        directive = need(name, key)
        bounds[key] = directive.integer()
        if not 0 <= bounds[key] < LARGEST_N_PIXELS:
            raise directive.error(f"'{key}' is {bounds[key]}; expected 0 to {LARGEST_N_PIXELS - 1}.")
    n_slow = bounds["max_ss"] - bounds["min_ss"] + 1
    n_fast = bounds["max_fs"] - bounds["min_fs"] + 1
    if n_slow < 1 or n_fast < 1 or n_slow * n_fast > LARGEST_N_PIXELS:
        raise need(name, "max_fs").error(f"panel '{name}' has {n_slow} x {n_fast} pixels.")
    axes = _axes(name, settings)
    return StoredPlace(
        data=data,
        fixed=tuple(None if axis in ("ss", "fs") else int(axis) for axis in axes),
        slow_axis=axes.index("ss"),
        fast_axis=axes.index("fs"),
        min_ss=bounds["min_ss"],
        min_fs=bounds["min_fs"],
        shape=(n_slow, n_fast),
    )


def frame_layout(
    path: str, places: Mapping[str, StoredPlace], frame_shape: tuple[int, ...] | None
) -> tuple[tuple[int, ...], dict[str, int], tuple[int, ...]]:
    """Shape of the frame, flat index of each panel's first pixel, and the strides of a block's axes.

    Panels from several data blocks are stacked: the frame has a leading axis, one entry per block in the
    order in which the file names them.
    """
    ranks = {len(place.fixed) for place in places.values()}
    if len(ranks) > 1:
        counts = " and ".join(map(str, sorted(ranks)))
        raise FileError(path, f"panels have data of {counts} axes; all need the same number of axes.")
    needed = tuple(max(sizes) for sizes in zip(*(place.end() for place in places.values()), strict=True))
    blocks = list(dict.fromkeys(place.data for place in places.values()))
    block_shape = needed
    if frame_shape is not None:
        block_shape = tuple(frame_shape)[-len(needed) :]
        expected_rank = len(needed) + (len(blocks) > 1)
        if len(frame_shape) != expected_rank or any(n < m for n, m in zip(block_shape, needed, strict=True)):
            raise FileError(
                path,
                f"has panels that reach to {needed}, which do not fit in frames of {tuple(frame_shape)}.",
                "Give the geometry that belongs to these data.",
            )
    shape = (len(blocks), *block_shape) if len(blocks) > 1 else block_shape
    if prod(shape) > LARGEST_N_PIXELS:
        raise FileError(path, f"describes frames of shape {shape}, more than {LARGEST_N_PIXELS} pixels.")
    strides = tuple(prod(block_shape[axis + 1 :]) for axis in range(len(block_shape)))
    starts = {
        name: blocks.index(place.data) * prod(block_shape)
        + sum(index * stride for index, stride in zip(place.first_index(), strides, strict=True))
        for name, place in places.items()
    }
    return shape, starts, strides


def _axes(name: str, settings: Mapping[str, Directive]) -> list[str]:
    """What each axis of the block is: "ss", "fs" or a fixed index; event axes are left out."""
    dims = {int(key[3:]): directive for key, directive in settings.items() if key.startswith("dim")}
    if not dims:
        return ["ss", "fs"]
    last = dims[max(dims)]
    if sorted(dims) != list(range(len(dims))):
        raise last.error(f"panel '{name}' has dim{max(dims)}, but not every dim below it.")
    axes = [directive.value for _, directive in sorted(dims.items()) if directive.value != "%"]
    if (
        axes.count("ss") != 1
        or axes.count("fs") != 1
        or not {d.value for d in dims.values()} <= _allowed(dims)
    ):
        raise last.error(
            f"the dim lines of panel '{name}' must be 'ss' and 'fs' once each, else '%' or whole numbers."
        )
    return axes


def _allowed(dims: Mapping[int, Directive]) -> set[str]:
    numbers = {d.value for d in dims.values() if d.value.isascii() and d.value.isdigit() and len(d.value) < 9}
    return {"ss", "fs", "%"} | numbers
