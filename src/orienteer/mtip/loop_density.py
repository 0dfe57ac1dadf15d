"""The density of a model from the loop: those of both halves, aligned and averaged."""

from collections.abc import Sequence

from orienteer.compute.arrays import array_namespace, to_numpy
from orienteer.mtip.loop_phasing import LoopPhasing
from orienteer.phase.ensemble import average_cluster
from orienteer.volume.volume import Volume


def loop_density(halves: Sequence[LoopPhasing], name: str = "density of the loop") -> Volume | None:
    """The mean of the halves' densities, each chosen by the frames of the other half; None before phasing.

    halves : the phasings of one model.  They share a frame of reference; their densities may differ by a
        shift and in hand, because the intensity fixes neither.
    """
    chosen = [each.chosen() for each in halves]
    found = [each for each in chosen if each is not None]
    if not found:
        return None
    densities, supports = zip(*found, strict=True)
    xp, first = array_namespace(densities[0]), halves[0]
    centred = first.settings.symmetry == "C1"
    members = range(len(densities))
    average = average_cluster(xp.stack(densities), xp.stack(supports), first.measured, members, centred)
    values = to_numpy(average.density)
    told: dict[str, str | int] = {"unit": "arbitrary", "halves_averaged": len(densities)}
    return Volume(values, first.coarse.voxel_A, "real", name=name, metadata=told)
