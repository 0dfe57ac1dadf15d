"""Compare phased densities: those of the two halves with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from orienteer.orientation.point_group import PointGroup
from orienteer.validate.half_maps import HalfMaps, compare_half_maps
from orienteer.validate.halves import on_device

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.phase.result import Phasing
    from orienteer.validate.intensities import IntensityAgreement


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
