"""Compare phased densities: those of the two halves with each other, and that of the run with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.phase.files import DESCRIPTION
from orienteer.phase.result import Phasing
from orienteer.validate.density_agreement import DensityAgreement
from orienteer.validate.half_maps import HalfMaps, compare_half_maps
from orienteer.validate.half_phasing import phased_folder
from orienteer.validate.halves import on_device
from orienteer.volume.checksum import checksum

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.run.run import Run
    from orienteer.validate.intensities import IntensityAgreement
    from orienteer.validate.result import Validation


@dataclass(frozen=True, eq=False)
class PhasedHalves:
    """The densities of the halves of one state, and how intensities are turned onto each other.

    state : of the run, counted from 0.
    densities : by half, 1 and 2; one that could not be phased is missing.
    intensity : agreement of the halves; with_run : of each half with the run.
    edge_inv_A : the edge of the data.
    seed, n_draws : of the random phases.
    """

    state: int
    densities: Mapping[int, Phasing]
    intensity: IntensityAgreement
    with_run: tuple[IntensityAgreement, IntensityAgreement]
    edge_inv_A: float
    seed: int = 0
    n_draws: int = 3
    device: DeviceName = "cpu"

    def maps(self) -> HalfMaps | None:
        """The comparison of the two halves; None if one of them could not be phased."""
        if len(self.densities) < 2:
            return None
        return compare_phasings(
            self.densities[1], self.densities[2], self.intensity, self.edge_inv_A, seed=self.seed,
            n_draws=self.n_draws, device=self.device,
        )  # fmt: skip

    def agreement_with(self, density: Phasing) -> DensityAgreement | None:
        """How far the density of the run agrees with that of a half, the one that agrees better."""
        found = [
            DensityAgreement.of(
                half,
                compare_phasings(
                    own, density, self.with_run[half - 1], self.edge_inv_A, seed=self.seed, n_draws=1,
                    device=self.device,
                ),
            )
            for half, own in self.densities.items()
        ]  # fmt: skip
        return min(found, key=lambda one: one.agrees_to_A or np.inf, default=None)


def beside_the_run(
    found: Validation, densities: Mapping[int, Phasing], halves: Sequence[PhasedHalves]
) -> Validation:
    """A validation with how far the densities of the run agree with those of the halves.

    densities : of the run, by state, counted from 0; only those that there are.
    """
    agreements, troubles = {}, found.troubles
    for one in halves:
        if one.state in densities:
            try:
                agreements[one.state] = one.agreement_with(densities[one.state])
            except OrienteerError as error:
                troubles += (f"The density of the run could not be compared: {error.message}",)
    states = tuple(replace(state, density=agreements.get(state.state - 1)) for state in found.states)
    return replace(found, density=agreements.get(0), states=states, troubles=troubles)


def densities_of(run: Run) -> tuple[dict[int, Phasing], tuple[str, ...]]:
    """The densities of the present intensities of a run, by state from 0, and a sentence for any other."""
    found, troubles = {}, []
    for state, intensity in enumerate(run.volumes()):
        folder = phased_folder(run.path, state + 1)
        if not (folder / DESCRIPTION).exists():
            continue
        try:
            phased = Phasing.open(folder)
        except OrienteerError as error:
            troubles.append(f"The density in {folder.name} could not be read: {error.message}")
            continue
        if phased.origin.get("checksum") == checksum(intensity):
            found[state] = phased
        else:
            model = f" --model {state + 1}" if state else ""
            troubles.append(
                f"The density in {folder.name} is of an earlier intensity and was not compared: phase the "
                f"run again, with phase{model} --restart."
            )
    return found, tuple(troubles)


def compare_phasings(
    first: Phasing,
    second: Phasing,
    intensity: IntensityAgreement,
    edge_inv_A: float,
    *,
    seed: int = 0,
    n_draws: int = 3,
    device: DeviceName = "cpu",
) -> HalfMaps:
    """Compare two densities up to the edge of the data and of both.

    intensity : the turn of the intensity of the second onto that of the first, and how far they agree.
    edge_inv_A : the edge of the data.
    seed, n_draws : of the random phases.
    """
    walls = on_device(first.support, device), on_device(second.support, device)
    edges_A = [1 / edge_inv_A, *(one.edge_A for one in (first, second) if one.edge_A)]
    maps = compare_half_maps(
        on_device(first.density, device), on_device(second.density, device), supports=walls,
        edge_A=max(edges_A), agrees_to_A=intensity.resolution_A or np.inf,
        order=max(intensity.order, common_order(first, second)), seed=seed, n_draws=n_draws,
        near=intensity.quaternion,
    )  # fmt: skip
    one, other, mask = (on_device(volume, "cpu") for volume in (maps.first, maps.second, maps.mask))
    return replace(maps, first=one, second=other, mask=mask)


def common_order(*phased: Phasing) -> int:
    """The order of the symmetry with which all were phased; 1 if they differ."""
    names = {str(one.settings["symmetry"]) for one in phased}
    return PointGroup(names.pop()).order if len(names) == 1 else 1
