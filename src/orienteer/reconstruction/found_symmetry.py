"""A symmetry that nobody gave: looked for in the models, and taken where frames unseen by them ask for it.

Of a particle that looks alike from sixty sides the frames are a sixtieth of what they could be: each voxel
has sixty times the noise that it need have, and faint frames of a nearly round particle never come to know
their poses.  An intensity that is half noise shows the axes clearly, since all of its voxels tell of three
angles.  Whether the symmetry is real, the sentinels decide: made symmetric, models that were so lose noise
and foretell them better; others lose what made them likely.

Only the symmetries of polyhedra are looked for.  Such particles are nearly round, which shows at once: near
the centre their intensity has no quadrupole, of which that of any other body is made there.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orienteer.compare.symmetry_axes import SymmetryAxes, find_axes
from orienteer.compare.turning import rotate_volume
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import inverse
from orienteer.reconstruction.model.quadrupole import quadrupole_share
from orienteer.reconstruction.model.symmetry import symmetric_mean
from orienteer.reconstruction.settings import AUTO_SYMMETRY
from orienteer.reconstruction.states.number_of_states import ask_sentinels, mean_and_error

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

_GROUPS = ("I", "O", "T")
# Shells that tell, in speckles, and share of the quadrupole below which a particle is nearly round.  Of
# viruses and ten cages of spheres with the symmetries T, O and I it was 0.000; of a virus with one corner
# unlike the others, of a spheroid of 1.1 to 1, of chaperonins and of nine bodies without symmetry 0.43 and
# more.
_ROUND_SPECKLES, _ROUND = (1.0, 2.0), 0.15
# A shell is looked at from this correlation of the halves on, and from so many speckles from the centre on:
# further in all bodies are round.
_KNOWN, _FIRST_SPECKLES = 0.5, 2.0
# Shells that are needed, and mean correlation with itself of an intensity that is worth asking about.
_FEWEST_SHELLS, _LEAST_CORRELATION = 6, 0.2
# Sentinels that can decide, and standard errors that their gain must be above nothing.
_FEWEST, _ERRORS = 10, 3.0


@dataclass(frozen=True)
class FoundSymmetry:
    """What became of the search.

    axes : of the symmetry that is taken; None: the models go on as they are.
    words : one sentence about it; empty where nothing looked like a symmetry.
    """

    axes: SymmetryAxes | None = None
    words: str = ""


def seeks_symmetry(emc: "Emc") -> bool:
    """Whether a symmetry is looked for, now that a start has settled: the particle is nearly round."""
    may_seek = (
        emc.may_find_symmetry
        and emc.settings.symmetry == AUTO_SYMMETRY
        and emc.group.order == 1
        and emc.course.stage == 0
        and emc.settings.models == 1
        and emc.n_halves == 2
        and emc.known is None
        and int(emc.sentinel.sum()) >= _FEWEST
    )
    # The last bits of models need not be the same on all ranks, which go the same way.
    return may_seek and emc.mesh.all.bcast(
        len(_known_shells(emc)) >= _FEWEST_SHELLS and _is_nearly_round(emc)
    )


def _is_nearly_round(emc: "Emc") -> bool:
    """Whether the models have hardly a quadrupole."""
    speckle = 1 / (emc.diameter_A * emc.work.stage.voxel_inv_A)
    shells = range(*(round(speckle * each) for each in _ROUND_SPECKLES))
    share = quadrupole_share(emc.models[0, 0], emc.models[1, 0], shells)
    return share < _ROUND


def look_for_symmetry(emc: "Emc") -> FoundSymmetry:
    """The largest of the symmetries with which the sentinels are likelier than without."""
    before, words = None, ""
    for axes in _candidates(emc):
        before = ask_sentinels(emc).evidence if before is None else before
        models = emc.xp.stack([symmetric_models(half, axes) for half in emc.models])
        gain, error = mean_and_error(ask_sentinels(emc, models).evidence - before)
        told = f"frames that no model has seen are likelier by {gain:.2g} +- {error:.1g} nats"
        if emc.mesh.all.bcast(gain > _ERRORS * error):
            return FoundSymmetry(axes, f"The intensity has the symmetry {axes.group}: with it {told}.")
        words = words or f"The intensity resembles one of symmetry {axes.group}, but with it {told}."
    return FoundSymmetry(None, words)


def symmetric_models(models: Array, axes: SymmetryAxes) -> Array:
    """Models (M, n, n, n) float32, turned to the axes that the group has by its definition, and symmetric."""
    xp = array_namespace(models)
    turned = [xp.nan_to_num(rotate_volume(model, inverse(axes.quaternion)), nan=1.0) for model in models]
    return xp.stack([symmetric_mean(xp.maximum(model, 0), axes.group) for model in turned])


def _known_shells(emc: "Emc") -> range:
    """The shells that the halves agree about, from where bodies cease to be round."""
    stage = emc.work.stage
    first = round(_FIRST_SPECKLES / (emc.diameter_A * stage.voxel_inv_A))
    known = emc.half_correlation[first : int(stage.scored_inv_A / stage.voxel_inv_A) + 1] > _KNOWN
    return range(first, first + (len(known) if known.all() else int(known.argmin())))


def _candidates(emc: "Emc") -> list[SymmetryAxes]:
    """Symmetries that the models may have, the largest first."""
    known = emc.mesh.all.bcast(_known_shells(emc))
    if len(known) < _FEWEST_SHELLS:
        return []
    shells = {"first_shell": known[0], "last_shell": known[-1]}
    model = to_numpy(emc.models[:, 0].mean(axis=0)).astype(np.float64)
    found = emc.mesh.all.bcast([find_axes(model, PointGroup(name), **shells) for name in _GROUPS])
    return [axes for axes in found if axes.correlation >= _LEAST_CORRELATION]
