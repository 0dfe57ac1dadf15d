"""The density of a model that the loop has come to: that of each half, brought together and averaged."""

from collections.abc import Sequence

from orienteer.compute.arrays import array_namespace, to_numpy
from orienteer.mtip.loop_phasing import LoopPhasing
from orienteer.phase.ensemble import average_cluster
from orienteer.volume.volume import Volume


def loop_density(halves: Sequence[LoopPhasing], name: str = "density of the loop") -> Volume | None:
    """The mean of the densities that the frames of the other half have chosen in each half.

    halves : the phasings of one model; the halves have one frame of reference, and may differ in where the
        density lies and in its hand, which no intensity tells.
    None before they have begun.
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
