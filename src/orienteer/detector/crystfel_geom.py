"""Reading CrystFEL ``.geom`` files: panels, groups, bad regions and masks.

Values without a panel name are defaults for the panels that come after them.  The corner and the steps are
in pixel widths (``res`` pixels per metre), the camera length in metres; CrystFEL's corner is our ``origin_m``
and its axes are ours.  Directives that do not concern the geometry (peak lists, flags, ...) are kept in
``other``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.reading import reading
from orienteer.detector.beam import HC_EV_A
from orienteer.detector.crystfel_layout import StoredPlace, frame_layout, stored_place
from orienteer.detector.crystfel_masks import (
    BadRegion,
    MaskReference,
    apply_mask_files,
    is_mask_key,
    mask_references,
)
from orienteer.detector.crystfel_syntax import LARGEST_TEXT_BYTES, Directive, read_directives
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.panel import Panel
from orienteer.errors import FileError, OrienteerError

_LENGTH = {"": 1.0, "m": 1.0, "mm": 1e-3}
_PANEL_KEYS = {
    *("min_fs", "max_fs", "min_ss", "max_ss", "corner_x", "corner_y", "fs", "ss", "res", "clen", "coffset"),
    *("data", "no_index", "mask_edge_pixels", "adu_per_photon", "adu_per_eV"),
    *(f"dim{axis}" for axis in range(10)),
}
_WHOLE_KEYS = {"photon_energy", "wavelength", "detector_shift_x", "detector_shift_y"}
LARGEST_N_PANELS = 1 << 14
LARGEST_N_OPEN_REGIONS = 1000


@dataclass(frozen=True)
class CrystfelGeometry:
    """Everything that a geometry file states.

    detector : the pixels; all masks that could be found are applied.
    photon_energy_eV : None if the file states none; the data files may hold a more exact one.
    masks : the mask arrays that the file points to, in files of their own or in the data files.
    adu_per_photon : by panel name, for the panels that state it.
    other : directives that do not concern the geometry.
    """

    detector: Detector
    photon_energy_eV: float | None
    masks: tuple[MaskReference, ...]
    adu_per_photon: Mapping[str, float]
    other: tuple[Directive, ...]


def read_crystfel(
    path: str | PathLike[str],
    distance_m: float | None = None,
    masks: Mapping[str, ArrayLike] | None = None,
    frame_shape: tuple[int, ...] | None = None,
) -> CrystfelGeometry:
    """Everything that a CrystFEL geometry file states.

    distance_m : camera length, needed if ``clen`` is a location in the data files; it overrides a number.
    masks : mask arrays by their location in the data files, with the shape of a frame.
    frame_shape : shape of a stored frame without the event axis; by default just large enough for the panels.
    """
    path = Path(path)
    with reading(path, "geometry file"):
        if path.stat().st_size > LARGEST_TEXT_BYTES:
            raise FileError(path, "is larger than any geometry file.")
        text = path.read_bytes().decode("utf-8", errors="replace")
        file = _File(read_directives(path, text), str(path))
        detector = file.detector(distance_m, frame_shape)
        references = mask_references(file.panels)
        return CrystfelGeometry(
            detector=apply_mask_files(detector, references, masks or {}, path.parent),
            photon_energy_eV=file.photon_energy_eV(),
            masks=references,
            adu_per_photon=file.adu_per_photon(),
            other=tuple(file.other),
        )


class _File:
    """The directives of a file, sorted by what they describe; the methods interpret them."""

    def __init__(self, directives: list[Directive], path: str) -> None:
        self.path = path
        self.panels: dict[str, dict[str, Directive]] = {}
        self.regions: dict[str, BadRegion] = {}
        self.groups: dict[str, Directive] = {}
        self.collections: dict[str, Directive] = {}
        self.whole: dict[str, Directive] = {}
        self.other: list[Directive] = []
        defaults: dict[str, Directive] = {}
        for directive in directives:
            owner, key = directive.owner, directive.key
            if owner is None and key.startswith("rigid_group_collection_"):
                self.collections[key.removeprefix("rigid_group_collection_")] = directive
            elif owner is None and key.startswith(("rigid_group_", "group_")):
                self.groups[key.removeprefix("rigid_").removeprefix("group_")] = directive
            elif owner is not None and owner.startswith("bad"):
                self.regions.setdefault(owner, BadRegion(owner, directive)).add(directive)
            else:
                known = key in _PANEL_KEYS or is_mask_key(key)
                if owner is None:
                    (defaults if known else self.whole)[key] = directive
                else:
                    self.panels.setdefault(owner, dict(defaults))[key] = directive
                    if len(self.panels) > LARGEST_N_PANELS:
                        raise directive.error(f"the file has more than {LARGEST_N_PANELS} panels, the limit.")
                if not known and key not in _WHOLE_KEYS:
                    self.other.append(directive)
        # A camera length without a panel name holds for all panels, even for those above its line.
        if "clen" in defaults:
            for settings in self.panels.values():
                settings.setdefault("clen", defaults["clen"])
        if not self.panels:
            raise FileError(path, "describes no panels.", "A panel has lines such as 'p0/min_fs = 0'.")

    def need(self, panel: str, key: str) -> Directive:
        directive = self.panels[panel].get(key)
        if directive is None:
            raise FileError(
                self.path,
                f"panel '{panel}' has no '{key}'.",
                f"Give '{panel}/{key} = ...', or '{key} = ...' before the first line of the panel.",
            )
        return directive

    def data_location(self, panel: str) -> str:
        return self.panels[panel]["data"].value if "data" in self.panels[panel] else "/data/data"

    def detector(self, distance_m: float | None, frame_shape: tuple[int, ...] | None) -> Detector:
        places = {
            name: stored_place(name, self.panels[name], self.need, self.data_location(name))
            for name in self.panels
        }
        shape, starts, strides = frame_layout(self.path, places, frame_shape)
        groups = self.groups_of_panels()
        panels = tuple(
            self.panel(name, places[name], starts[name], strides, distance_m, groups[name])
            for name in self.panels
        )
        collections = {name: _members(directive) for name, directive in self.collections.items()}
        mask = np.zeros(prod(shape), np.uint8)
        regions = self.regions_of_panels()
        for panel in panels:
            chosen = [*regions.get(panel.name, []), *regions.get(None, [])]
            mask[panel.frame_indices()] = PixelUse.NEVER * self.bad_pixels(panel, places[panel.name], chosen)
        detector = Detector(
            panels, frame_shape=shape, mask=mask, name=Path(self.path).stem, collections=collections
        )
        shift_m = [
            self.whole[key].quantity(_LENGTH)
            if key in self.whole and not self.whole[key].is_location()
            else 0.0
            for key in ("detector_shift_x", "detector_shift_y")
        ]
        return detector.moved([*shift_m, 0.0]) if any(shift_m) else detector

    def panel(
        self,
        name: str,
        place: StoredPlace,
        first_pixel: int,
        strides: tuple[int, ...],
        distance_m: float | None,
        groups: tuple[str, ...],
    ) -> Panel:
        settings = self.panels[name]
        res = self.res(name)
        clen_m = self.camera_length_m(name) if distance_m is None else distance_m
        coffset_m = settings["coffset"].quantity(_LENGTH) if "coffset" in settings else 0.0
        corner = (self.need(name, "corner_x").number() / res, self.need(name, "corner_y").number() / res)
        try:
            return Panel(
                name,
                (*corner, clen_m + coffset_m),
                fast_m=np.array(self.need(name, "fs").vector()) / res,
                slow_m=np.array(self.need(name, "ss").vector()) / res,
                shape=place.shape,
                first_pixel=first_pixel,
                slow_stride=strides[place.slow_axis],
                fast_stride=strides[place.fast_axis],
                groups=groups,
            )
        except FileError:
            raise
        except OrienteerError as error:
            raise self.need(name, "min_fs").error(error.message, error.hint) from error

    def res(self, panel: str) -> float:
        directive = self.need(panel, "res")
        res = directive.number()
        if not 0 < res < 1e9:
            raise directive.error(f"'res' is {res:g} pixels per metre; expected a positive number.")
        return res

    def camera_length_m(self, panel: str) -> float:
        directive = self.panels[panel].get("clen")
        hint = "Give the distance: --distance-m (distance_m=)."
        if directive is None:
            raise FileError(self.path, "states no camera length ('clen').", hint)
        if directive.is_location():
            where = directive.value.split()[0]
            raise directive.error(f"the camera length is stored in the data files, at {where}.", hint)
        return directive.quantity(_LENGTH)

    def bad_pixels(self, panel: Panel, place: StoredPlace, regions: list[BadRegion]) -> NDArray[np.bool_]:
        settings = self.panels[panel.name]
        bad = np.full(panel.shape, "no_index" in settings and settings["no_index"].flag())
        edge = settings["mask_edge_pixels"].integer() if "mask_edge_pixels" in settings else 0
        if edge > 0:
            inner = np.zeros(panel.shape, dtype=bool)
            inner[edge:-edge, edge:-edge] = True
            bad |= ~inner
        for region in regions:
            region.mark(bad, panel, self.res(panel.name), place.min_fs, place.min_ss)
        return bad

    def regions_of_panels(self) -> dict[str | None, list[BadRegion]]:
        """The bad regions by the name of their panel; None for regions of all panels."""
        found: dict[str | None, list[BadRegion]] = {}
        for region in self.regions.values():
            if region.panel is not None and region.panel not in self.panels:
                raise region.line.error(
                    f"bad region '{region.name}' is for panel '{region.panel}', which does not exist."
                )
            if not region.bounds:
                raise region.line.error(f"bad region '{region.name}' has no bounds.")
            found.setdefault(region.panel, []).append(region)
        if len(found.get(None, [])) > LARGEST_N_OPEN_REGIONS:
            raise FileError(
                self.path, f"has more than {LARGEST_N_OPEN_REGIONS} bad regions that name no panel."
            )
        return found

    def groups_of_panels(self) -> dict[str, tuple[str, ...]]:
        """The groups of each panel, the largest first: a group of groups holds all panels of its members."""
        members = {name: self._panels_of_group(name, ()) for name in self.groups}
        order = sorted(members, key=lambda name: -len(members[name]))
        return {panel: tuple(name for name in order if panel in members[name]) for panel in self.panels}

    def _panels_of_group(self, name: str, above: tuple[str, ...]) -> frozenset[str]:
        directive = self.groups[name]
        if name in above or len(above) > 100:
            raise directive.error(f"group '{name}' is a member of itself.")
        found: set[str] = set()
        for member in _members(directive):
            if member in self.panels:
                found.add(member)
            elif member in self.groups:
                found |= self._panels_of_group(member, (*above, name))
            else:
                raise directive.error(
                    f"group '{name}' has the member '{member}', which is neither a panel nor a group."
                )
        return frozenset(found)

    def adu_per_photon(self) -> dict[str, float]:
        found = {}
        for name, settings in self.panels.items():
            if "adu_per_photon" in settings:
                found[name] = settings["adu_per_photon"].number()
            elif "adu_per_eV" in settings and (energy := self.photon_energy_eV()) is not None:
                found[name] = settings["adu_per_eV"].number() * energy
        return found

    def photon_energy_eV(self) -> float | None:
        energy = self.whole.get("photon_energy")
        wavelength = self.whole.get("wavelength")
        value = None
        if energy is not None and not energy.is_location():
            value = energy.quantity({"": 1.0, "eV": 1.0, "keV": 1e3, "MeV": 1e6})
        elif wavelength is not None and not wavelength.is_location():
            length_A = wavelength.quantity({"A": 1.0, "m": 1e10})
            value = HC_EV_A / length_A if length_A > 0 else 0.0
        if value is not None and not 0 < value < np.inf:
            raise (energy or wavelength).error("the photon energy must be positive.")  # type: ignore[union-attr]
        return value


def _members(directive: Directive) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in directive.value.split(",")) if word)
