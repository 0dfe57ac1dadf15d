"""Detector: where each pixel is, what it may be used for, and the vectors and factors that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import orienteer
from orienteer.compute.arrays import to_numpy
from orienteer.compute.nearest import nearest
from orienteer.detector.assembly import Assembly, assemble_panels, assemble_pixels
from orienteer.detector.masks import PixelUse, check_mask
from orienteer.detector.panel import LARGEST_N_PIXELS, Panel
from orienteer.detector.pixel_list import PixelList
from orienteer.detector.scattering_geometry import POLARISATIONS as POLARISATIONS
from orienteer.detector.scattering_geometry import Polarisation as Polarisation
from orienteer.detector.scattering_geometry import ewald_vectors, polarisation_factor, solid_angle_sr
from orienteer.errors import GeometryMismatch, OrienteerError


@dataclass(frozen=True, eq=False, init=False)
class Detector:
    """The pixels of a frame in metres from the sample, with the beam along +z.

    Pixel p is entry p of the flattened frame.  A stored value that no panel covers is masked NEVER, is placed
    on the beam axis and has solid angle 0.  The wavelength can change from event to event, so the methods
    that return q take it as an argument.

    panels : the flat panels; empty if ``pixels`` is given.
    frame_shape : shape of a frame as it is stored; by default that of the only panel, else (P,).
    mask : (P,) uint8 levels of :class:`~orienteer.detector.masks.PixelUse`.
    efficiency : (P,) photons counted per photon arriving, or None for 1 everywhere.
    name : shown in messages and pictures.
    pixels : position and area of every single pixel, instead of panels.
    collections : named sets of groups that are refined together, as CrystFEL's rigid group collections.

    >>> panel = Panel("p0", (-0.001, -0.001, 0.1), fast_m=(0.001, 0, 0), slow_m=(0, 0.001, 0), shape=(2, 2))
    >>> detector = Detector([panel])
    >>> detector.frame_shape, detector.n_pixels
    ((2, 2), 4)
    >>> bool((detector.q_inv_A(wavelength_A=2.0)[:, 2] < 0).all())  # the Ewald sphere bends back
    True
    """

    panels: tuple[Panel, ...]
    frame_shape: tuple[int, ...]
    mask: NDArray[np.uint8]
    efficiency: NDArray[np.float64] | None
    name: str
    pixels: PixelList | None
    collections: Mapping[str, tuple[str, ...]] = field(repr=False)

    def __init__(
        self,
        panels: tuple[Panel, ...] | list[Panel] = (),
        frame_shape: tuple[int, ...] | None = None,
        mask: ArrayLike | None = None,
        efficiency: ArrayLike | None = None,
        name: str = "detector",
        pixels: PixelList | None = None,
        collections: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        panels = tuple(panels)
        if (pixels is None) == (not panels):
            raise OrienteerError("a detector is made of panels or of a list of pixels: give one of the two.")
        if frame_shape is None:
            frame_shape = _default_frame_shape(panels, pixels)
        keep: Any = lambda key, value: object.__setattr__(self, key, value)  # noqa: E731
        keep("panels", panels)
        keep("pixels", pixels)
        keep("frame_shape", tuple(int(n) for n in frame_shape))
        keep("name", str(name))
        keep("collections", {str(key): tuple(groups) for key, groups in (collections or {}).items()})
        if not self.frame_shape or min(self.frame_shape) < 1 or self.n_pixels > LARGEST_N_PIXELS:
            raise OrienteerError(
                f"a frame of shape {self.frame_shape} does not have between 1 and {LARGEST_N_PIXELS} pixels."
            )
        levels = np.zeros(self.n_pixels, np.uint8) if mask is None else check_mask(mask, self.frame_shape)
        levels[~self.covered] = PixelUse.NEVER
        keep("mask", _frozen(levels))
        keep("efficiency", None if efficiency is None else self._check_efficiency(efficiency))

    @cached_property
    def covered(self) -> NDArray[np.bool_]:
        """(P,) whether a value of the stored frame belongs to a pixel."""
        if self.pixels is not None:
            if len(self.pixels) != self.n_pixels:
                raise OrienteerError(
                    f"{len(self.pixels)} pixels are listed, but a frame of shape {self.frame_shape} "
                    f"has {self.n_pixels}."
                )
            return _frozen(np.asarray(self.pixels.area_vectors_m2.any(axis=1)))
        names = [panel.name for panel in self.panels]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise OrienteerError(f"two panels are called '{twice}'.")
        covered = np.zeros(self.n_pixels, dtype=bool)
        for panel in self.panels:
            if panel.last_pixel >= self.n_pixels:
                raise OrienteerError(
                    f"panel '{panel.name}' reaches pixel {panel.last_pixel}, but a frame of shape "
                    f"{self.frame_shape} has {self.n_pixels}."
                )
            indices = panel.frame_indices().reshape(-1)
            if covered[indices].any():
                claimed = int(indices[covered[indices]][0])
                raise OrienteerError(
                    f"panel '{panel.name}' claims stored pixel {claimed}, which another panel claims too."
                )
            covered[indices] = True
        if int(covered.sum()) != sum(panel.n_pixels for panel in self.panels):
            raise OrienteerError("a panel claims the same stored pixel twice; check its strides.")
        return _frozen(covered)

    def _check_efficiency(self, efficiency: ArrayLike) -> NDArray[np.float64]:
        values = np.array(efficiency, dtype=np.float64)
        if values.shape not in (self.frame_shape, (self.n_pixels,)):
            raise OrienteerError(
                f"the efficiency has shape {values.shape}; the frame has {self.frame_shape}.",
                "Give one number for each pixel of a frame.",
            )
        if not np.all(np.isfinite(values)) or values.min() < 0:
            raise OrienteerError("the efficiency of every pixel must be a finite number >= 0.")
        return _frozen(values.reshape(-1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detector):
            return NotImplemented
        mine, theirs = self.efficiency, other.efficiency
        return (
            (self.name, self.frame_shape, self.panels, self.pixels, self.collections)
            == (other.name, other.frame_shape, other.panels, other.pixels, other.collections)
            and np.array_equal(self.mask, other.mask)
            and (mine is theirs or (mine is not None and theirs is not None and np.array_equal(mine, theirs)))
        )

    def __hash__(self) -> int:
        return hash((self.name, self.frame_shape, self.panels, self.pixels))

    def __repr__(self) -> str:
        used = int((self.mask < PixelUse.NEVER).sum())
        many = "" if len(self.panels) == 1 else "s"
        made_of = f"{len(self.panels)} panel{many}" if self.panels else "pixel list"
        return (
            f"<Detector '{self.name}': {made_of}, frame {self.frame_shape}, "
            f"{used} of {self.n_pixels} pixels used, {self.distance_m:.4g} m from the sample>"
        )

    def show(self, title: str = "", *, wavelength_A: float | None = None) -> Any:
        """Draw the panels as seen against the beam; a wavelength adds rings of equal resolution."""
        return orienteer.show(self, title, wavelength_A=wavelength_A)  # plot/ imports this module

    @property
    def n_pixels(self) -> int:
        """P, the values of a stored frame."""
        return prod(self.frame_shape)

    @cached_property
    def positions_m(self) -> NDArray[np.float64]:
        """(P, 3) centres of the pixels; stored values without a pixel lie on the beam axis."""
        if self.pixels is not None:
            positions = self.pixels.positions_m.copy()
        else:
            positions = np.empty((self.n_pixels, 3))
            for panel in self.panels:
                positions[panel.frame_indices()] = panel.pixel_centres_m()
        if not self.covered.all():
            distance_m = float(np.median(positions[self.covered, 2])) if self.covered.any() else 1.0
            positions[~self.covered] = (0.0, 0.0, distance_m if distance_m > 0 else 1.0)
        return _frozen(positions)

    @cached_property
    def distance_m(self) -> float:
        """Distance of the detector along the beam: the median z of its pixels."""
        z_m = self.positions_m[self.covered, 2] if self.covered.any() else self.positions_m[:, 2]
        return float(np.median(z_m))

    @cached_property
    def directions(self) -> NDArray[np.float64]:
        """(P, 3) unit vectors from the sample to the pixels: the directions of k_out."""
        return _frozen(self.positions_m / np.linalg.norm(self.positions_m, axis=1)[:, None])

    @cached_property
    def ewald_vectors(self) -> NDArray[np.float64]:
        """(P, 3) k_out − k_in as unit vectors, so that q = ewald_vectors / λ; z is never positive."""
        return _frozen(ewald_vectors(self.positions_m))

    @cached_property
    def area_vectors_m2(self) -> NDArray[np.float64]:
        """(P, 3) normal times area of each pixel; zero for stored values without a pixel."""
        if self.pixels is not None:
            return _frozen(self.pixels.area_vectors_m2.copy())
        areas = np.zeros((self.n_pixels, 3))
        for panel in self.panels:
            areas[panel.frame_indices()] = panel.area_vector_m2
        return _frozen(areas)

    @cached_property
    def solid_angle_sr(self) -> NDArray[np.float64]:
        """(P,) solid angle of each pixel: area vector along the line of sight over the distance squared."""
        return _frozen(solid_angle_sr(self.positions_m, self.area_vectors_m2))

    def q_inv_A(self, wavelength_A: float) -> NDArray[np.float64]:
        """(P, 3) scattering vectors in 1/A at a wavelength, |q| = 1/d."""
        return self.ewald_vectors / check_wavelength(wavelength_A)

    def q_length_inv_A(self, wavelength_A: float) -> NDArray[np.float64]:
        """(P,) length of the scattering vectors in 1/A, 2 sin θ / λ."""
        return np.asarray(np.linalg.norm(self.ewald_vectors, axis=1) / check_wavelength(wavelength_A))

    def edge_resolution_A(self, wavelength_A: float) -> float:
        """d in Å of the largest full ring inside the detector; infinite if the beam misses it."""
        from orienteer.detector.resolution import edge_resolution_A

        return edge_resolution_A(self, wavelength_A)

    def corner_resolution_A(self, wavelength_A: float) -> float:
        """The finest d in Å at the centre of a pixel that may be used; infinite if there is none."""
        from orienteer.detector.resolution import corner_resolution_A

        return corner_resolution_A(self, wavelength_A)

    def polarisation(self, kind: Polarisation = "x") -> NDArray[np.float64]:
        """(P,) polarisation factor: 1 − (k_out·x)² for "x", 1 − (k_out·y)² for "y", their mean for "none"."""
        return np.asarray(polarisation_factor(self.directions, kind))

    def correction(self, kind: Polarisation = "x") -> NDArray[np.float64]:
        """(P,) solid angle × polarisation × efficiency: expected counts per |F|² · fluence · r_e²."""
        correction = self.solid_angle_sr * self.polarisation(kind)
        return correction if self.efficiency is None else correction * self.efficiency

    @cached_property
    def assembly(self) -> Assembly:
        """Which pixel fills each cell of a flat picture of the detector."""
        return assemble_panels(self.panels) if self.pixels is None else assemble_pixels(self.pixels)

    def assemble(self, frames: ArrayLike, fill: float = np.nan) -> NDArray[Any]:
        """Frames as pictures with y up and x to the right when drawn with the origin at the lower left.

        frames : (..., P) or (..., *frame_shape).
        fill : value where there is no pixel; NaN turns integer frames into floats.
        Returns (..., ny, nx); the axes are ``assembly.y_m`` and ``assembly.x_m``.
        """
        values = self.flatten(frames)
        pixel = self.assembly.pixel
        dtype = values.dtype
        if not isinstance(fill, int | np.integer | bool):
            dtype = np.result_type(dtype, np.float32)
        pictures = np.full((*values.shape[:-1], *pixel.shape), fill, dtype=dtype)
        pictures[..., pixel >= 0] = values[..., pixel[pixel >= 0]]
        return pictures

    def flatten(self, frames: ArrayLike) -> NDArray[Any]:
        """Frames (..., P) or (..., *frame_shape) as (..., P)."""
        values = to_numpy(frames)
        if values.ndim and values.shape[-1] == self.n_pixels:
            return values
        rank = len(self.frame_shape)
        if values.shape[-rank:] == self.frame_shape:
            return values.reshape(*values.shape[:-rank], self.n_pixels)
        raise GeometryMismatch(
            f"frames are {values.shape}, but detector '{self.name}' describes {self.frame_shape}.",
            "Give the geometry that belongs to the data.",
        )

    def with_mask(self, mask: ArrayLike) -> "Detector":
        """The same pixels with another mask, levels 0 to 2 as (P,) or ``frame_shape``."""
        return replace(self, mask=np.asarray(mask))

    def with_efficiency(self, efficiency: ArrayLike | None) -> "Detector":
        """The same pixels with another efficiency, (P,) or ``frame_shape``."""
        return replace(self, efficiency=None if efficiency is None else np.asarray(efficiency))

    def moved(self, shift_m: ArrayLike, group: str | None = None) -> "Detector":
        """The detector with all panels, one panel or one group of panels shifted by (3,) metres."""
        shift = np.asarray(shift_m, dtype=np.float64)
        if shift.shape != (3,) or not np.all(np.isfinite(shift)):
            raise OrienteerError(f"shift_m is {shift_m!r}; expected three finite lengths in metres.")
        if self.pixels is not None and group is None:
            return replace(self, pixels=self.pixels.moved(shift))
        chosen = self._panels_of(group)
        return replace(self, panels=tuple(p.moved(shift) if p in chosen else p for p in self.panels))

    def rotated(
        self, matrix: ArrayLike, group: str | None = None, about_m: ArrayLike = (0.0, 0.0, 0.0)
    ) -> "Detector":
        """The detector with all panels, one panel or one group turned by a matrix (3, 3) about a point."""
        rotation, about = np.asarray(matrix, dtype=np.float64), np.asarray(about_m, dtype=np.float64)
        if rotation.shape != (3, 3) or not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9):
            raise OrienteerError(
                "a detector is turned by a 3 x 3 rotation matrix; this one is not orthogonal."
            )
        if self.pixels is not None and group is None:
            return replace(self, pixels=self.pixels.rotated(rotation, about))
        chosen = self._panels_of(group)
        return replace(
            self, panels=tuple(p.rotated(rotation, about) if p in chosen else p for p in self.panels)
        )

    def _panels_of(self, group: str | None) -> set[Panel]:
        chosen = {panel for panel in self.panels if group is None or panel.belongs_to(group)}
        if not chosen:
            names = sorted({name for panel in self.panels for name in (panel.name, *panel.groups)})
            close = nearest(str(group), names)
            raise OrienteerError(
                f"detector '{self.name}' has no panel or group '{group}'.",
                f"Did you mean '{close}'?" if close else f"It has: {', '.join(names[:20]) or 'no panels'}.",
            )
        return chosen


def check_wavelength(wavelength_A: float) -> float:
    """Return the wavelength, or raise an OrienteerError if it is not a positive length."""
    if not 0 < wavelength_A < np.inf:
        raise OrienteerError(f"wavelength_A is {wavelength_A}; expected a positive number of Å.")
    return float(wavelength_A)


def _default_frame_shape(panels: tuple[Panel, ...], pixels: PixelList | None) -> tuple[int, ...]:
    if pixels is not None:
        return (len(pixels),)
    if len(panels) == 1 and panels[0].first_pixel == 0 and panels[0].last_pixel == panels[0].n_pixels - 1:
        return panels[0].shape
    return (1 + max(panel.last_pixel for panel in panels),)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
