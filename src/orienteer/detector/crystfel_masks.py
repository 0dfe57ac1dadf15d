"""What CrystFEL geometry files state about bad pixels: bad regions and mask arrays."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.detector.crystfel_syntax import Directive
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse, combine_masks
from orienteer.detector.panel import LARGEST_N_PIXELS, Panel
from orienteer.errors import GeometryMismatch, OrienteerError

_REGION_KEYS = ("min_x", "max_x", "min_y", "max_y", "min_fs", "max_fs", "min_ss", "max_ss")
_MASK_KEY = re.compile(r"mask([0-7]?)(?:_(data|file|goodbits|badbits|good|bad))?")


@dataclass
class BadRegion:
    """A rectangle of pixels that are never used.

    ``x`` and ``y`` bounds are in pixel widths in the laboratory frame, ``fs`` and ``ss`` bounds (inclusive)
    are indices in the stored data.  A region has only one kind of bounds; a missing bound is open.
    """

    name: str
    line: Directive
    bounds: dict[str, float] = field(default_factory=dict)
    panel: str | None = None

    def add(self, directive: Directive) -> None:
        """Take one ``badname/key = value`` line."""
        if directive.key == "panel":
            self.panel = directive.value
        elif directive.key in _REGION_KEYS:
            self.bounds[directive.key] = directive.number()
        else:
            raise directive.error(
                f"a bad region has no '{directive.key}'.", f"It has {', '.join(_REGION_KEYS)}, panel."
            )
        if len({key[4:] in ("x", "y") for key in self.bounds}) > 1:
            raise directive.error(f"bad region '{self.name}' mixes x/y with fs/ss bounds.")

    def mark(self, bad: NDArray[np.bool_], panel: Panel, res: float, min_fs: int, min_ss: int) -> None:
        """Set ``bad`` (n_slow, n_fast) for the pixels of a panel that lie in the region.

        res : pixels per metre.  min_fs, min_ss : where the panel starts in the stored data.
        """
        if not self.in_laboratory:
            bad[self._span("ss", min_ss), self._span("fs", min_fs)] = True
            return
        low = np.array([self.bounds.get(f"min_{axis}", -np.inf) for axis in "xy"])
        high = np.array([self.bounds.get(f"max_{axis}", np.inf) for axis in "xy"])
        corners = panel.corners_m()[:, :2] * res
        if np.any(corners.max(axis=0) < low) or np.any(corners.min(axis=0) > high):
            return
        centres = panel.pixel_centres_m()[..., :2] * res
        bad |= np.all((centres >= low) & (centres <= high), axis=-1)

    @property
    def in_laboratory(self) -> bool:
        """Whether the bounds are laboratory coordinates."""
        return any(key[4:] in ("x", "y") for key in self.bounds)

    def _span(self, axis: str, start: int) -> slice:
        """The stored range from its lower to its upper bound (inclusive), counted from the panel's start."""
        low, high = self.bounds.get(f"min_{axis}", 0.0), self.bounds.get(f"max_{axis}", np.inf)
        first = max(0, int(np.ceil(min(low, LARGEST_N_PIXELS))) - start)
        end = max(0, int(np.floor(min(high, LARGEST_N_PIXELS))) + 1 - start)
        return slice(first, end)


@dataclass(frozen=True)
class MaskReference:
    """A mask array that a geometry file points to.

    location : dataset in the HDF5 file.
    file : the file that holds it; None for the data file itself.
    good_bits : a pixel is bad unless all of these bits are set.
    bad_bits : a pixel is bad when any of these bits is set; by default all, when no bits are named.
    panels : names of the panels that it applies to.
    """

    location: str
    file: str | None
    good_bits: int
    bad_bits: int
    panels: tuple[str, ...]

    def bad_pixels(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Which entries of the mask array mark bad pixels.

        >>> MaskReference("/mask", None, good_bits=0, bad_bits=0b10, panels=()).bad_pixels([0, 1, 2, 3])
        array([False, False,  True,  True])
        """
        bits = np.asarray(values)
        if bits.dtype.kind not in "iub":
            raise OrienteerError(
                f"the mask at {self.location} holds {bits.dtype}; expected integers.",
                "Let the .geom file name an integer mask (mask = PATH).",
            )
        unsigned = bits.astype(np.int64).view(np.uint64)
        good, bad = np.uint64(self.good_bits), np.uint64(self.bad_bits)
        return np.asarray(((unsigned & good) != good) | ((unsigned & bad) != 0))


def is_mask_key(key: str) -> bool:
    """Whether a directive belongs to a mask array: ``mask``, ``mask_good``, ``mask3_badbits``, ..."""
    return _MASK_KEY.fullmatch(key) is not None


def mask_references(settings: Mapping[str, Mapping[str, Directive]]) -> tuple[MaskReference, ...]:
    """The mask arrays that the settings of the panels (name -> key -> directive) point to."""
    found: dict[tuple[str, str | None, int, int], list[str]] = {}
    for panel, directives in settings.items():
        masks: dict[str, dict[str, Directive]] = {}
        for key, directive in directives.items():
            match = _MASK_KEY.fullmatch(key)
            if match:
                # Old files have names without a number, which mean mask 0.
                part = {"good": "goodbits", "bad": "badbits", None: "data"}.get(match[2], match[2])
                masks.setdefault(match[1] or "0", {})[str(part)] = directive
        for parts in masks.values():
            if "data" not in parts:
                continue
            good = _bits(parts.get("goodbits"))
            bad = _bits(parts.get("badbits"))
            if good is None and bad is None:
                bad = (1 << 64) - 1
            file = parts["file"].value if "file" in parts else None
            found.setdefault((parts["data"].value, file, good or 0, bad or 0), []).append(panel)
    return tuple(MaskReference(*key, panels=tuple(panels)) for key, panels in found.items())


def apply_mask(detector: Detector, reference: MaskReference, values: ArrayLike) -> Detector:
    """The detector with the bad pixels of a mask array (shaped as the frame, or flat) masked NEVER."""
    if np.size(values) != detector.n_pixels:
        raise GeometryMismatch(
            f"the mask at {reference.location} has shape {np.shape(values)}, but detector "
            f"'{detector.name}' has "
            f"frames of {detector.frame_shape}.",
            "Give the mask file that belongs to this geometry.",
        )
    return detector.with_mask(combine_masks(detector.mask, mask_levels(detector, reference, values)[0]))


def mask_levels(detector: Detector, reference: MaskReference, values: ArrayLike) -> NDArray[np.uint8]:
    """Levels (n, P) from the mask arrays of n frames: NEVER at the bad pixels of the reference's panels."""
    bad = reference.bad_pixels(values).reshape(-1, detector.n_pixels)
    of_panels = np.zeros(detector.n_pixels, dtype=bool)
    for panel in detector.panels:
        if panel.name in reference.panels:
            of_panels[panel.frame_indices()] = True
    return np.where(of_panels & bad, PixelUse.NEVER, PixelUse.ORIENT_AND_MERGE).astype(np.uint8)


def apply_mask_files(
    detector: Detector, references: Sequence[MaskReference], given: Mapping[str, ArrayLike], folder: Path
) -> Detector:
    """The detector with every mask applied whose array is given (by location) or whose file is found.

    A mask inside the data files is not known here: the code that opens these files applies it.  A mask file
    that is named but missing causes a warning.
    """
    for reference in references:
        if reference.location in given:
            detector = apply_mask(detector, reference, given[reference.location])
        elif reference.file is not None:
            path = next((p for p in (folder / reference.file, Path(reference.file)) if p.is_file()), None)
            if path is None or "%" in reference.location:
                warnings.warn(
                    f"the mask {reference.location} of {reference.file} was not found and masks nothing.",
                    stacklevel=2,
                )
                continue
            detector = apply_mask(detector, reference, _read_mask(path, reference.location))
    return detector


def _read_mask(path: Path, location: str) -> NDArray[Any]:
    from orienteer.compute.hdf5_reading import open_hdf5, read_whole

    with open_hdf5(path, "mask file") as file:
        return read_whole(file, location.lstrip("/"), "iu", None, LARGEST_N_PIXELS)


def _bits(directive: Directive | None) -> int | None:
    if directive is None:
        return None
    bits = directive.integer()
    if not 0 <= bits < 1 << 64:
        raise directive.error(f"'{directive.key}' needs bits from 0 to 0xffffffffffffffff.")
    return bits
