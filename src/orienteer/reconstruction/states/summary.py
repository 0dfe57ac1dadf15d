"""A summary of each state: what share of the frames shows it, and how far its halves agree."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.results import agreement_A, radial_summary

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried


def occupancy(emc: "Carried") -> NDArray[np.float64]:
    """Share of the frames that show each model, (M,), by their probabilities; junk and sentinels left out."""
    table = emc.table
    shown = table.merged & ~emc.sentinel & (table.shown >= 0)
    mass = table.state_probability[shown].sum(axis=0)
    return np.asarray(mass / max(float(mass.sum()), 1e-300))


def state_summaries(emc: "Carried") -> list[dict[str, float | None]]:
    """Occupancy and agreement of the halves of each model; empty if there is only one."""
    if emc.n_models == 1:
        return []
    stage = emc.work.stage
    found = []
    for m, share in enumerate(occupancy(emc)):
        radial = radial_summary(emc.correlation_of(m), emc.radial_mean, stage.voxel_inv_A, stage.merged_inv_A)
        agrees = agreement_A(radial) if emc.n_halves == 2 and emc.course.has_settled else None
        found.append({"occupancy": float(share), "agrees_to_A": agrees})
    return found
