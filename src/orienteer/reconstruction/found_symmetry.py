"""A symmetry that nobody gave: tried where the models show it, and kept where frames unseen by them allow it.

Of a particle that looks alike from sixty sides the frames are a sixtieth of what they could be: each voxel
has sixty times the noise that it need have, and faint frames of a nearly round particle never come to know
their poses.  An intensity that is half noise shows the axes clearly, since all of its voxels tell of three
angles.  Models of that symmetry then settle by themselves, and the sentinels are asked.  A noisy model has
sixty likenesses of every frame, of which one always fits its photons: what it loses by noise it nearly gains
by choice.  So a symmetry that is real may make faint frames hardly likelier, and is kept unless they say
otherwise; one that is not, such as that of a virus with one corner unlike the others, costs many nats.

All poses of the grid stay, turned such that none are alike: they lie as near to each other as those of a grid
with sixty times as many.

Only the symmetries of polyhedra are looked for.  Such particles are nearly round, which shows at once: near
the centre their intensity has no quadrupole, of which that of most other bodies is made there.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.symmetry_axes import SymmetryAxes, find_axes
from orienteer.compare.turning import rotate_volume
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.compute.stage_log import logged
from orienteer.orientation.point_group import POLYHEDRA, PointGroup
from orienteer.orientation.quaternion import compose, inverse
from orienteer.reconstruction.model.quadrupole import is_nearly_round
from orienteer.reconstruction.model.symmetry import symmetric_mean
from orienteer.reconstruction.settings import AUTO_SYMMETRY
from orienteer.reconstruction.states.number_of_states import (
    FEWEST_SENTINELS,
    LARGEST_LOSS,
    ask_sentinels,
    mean_and_error,
)

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# A shell is looked at from this correlation of the halves on, and from so many speckles from the centre on:
# further in all bodies are round.
_KNOWN, _FIRST_SPECKLES = 0.5, 2.0
# Shells that are needed; mean correlation with itself of an intensity that is worth a trial, and share of
# that about the axes of any of the groups.  Of a virus it was 0.85 for I and T, and 0.49 for O.
_FEWEST_SHELLS, _LEAST_CORRELATION, _AS_MUCH = 6, 0.2, 0.8
# Standard errors by which frames may be less likely with a symmetry that is kept.
_ALLOWED_ERRORS = 1.0


def seeks_symmetry(emc: "Emc") -> bool:
    """Whether a symmetry is looked for, now that a start has settled: once, of a nearly round particle."""
    may_seek = (
        emc.may_find_symmetry
        and emc.settings.symmetry == AUTO_SYMMETRY
        and emc.group.order == 1
        and emc.course.stage == 0
        and not emc.course.has_asked_symmetry
        and emc.settings.models == 1
        and emc.n_halves == 2
        and emc.known is None
        and int(emc.sentinel.sum()) >= FEWEST_SENTINELS
    )
    # The last bits of models need not be the same on all ranks, which go the same way.
    return may_seek and emc.mesh.all.bcast(
        len(_known_shells(emc)) >= _FEWEST_SHELLS and is_nearly_round(emc.models, emc.speckle)
    )


def try_symmetry(emc: "Emc") -> str:
    """Do the first stage again with models of a symmetry that they show; a sentence if there is one."""
    emc.course.has_asked_symmetry = True
    with logged("symmetry"):
        axes = look_for_symmetry(emc)
        if axes is None:
            return ""
        found = {**emc.learnt(), "log_likelihood": emc.course.last_log_likelihood}
        emc.candidates.append({**found, "evidence": ask_sentinels(emc).evidence})
        emc.table.quaternion = np.asarray(compose(emc.table.quaternion, axes.quaternion))
        emc.models = emc.xp.stack([symmetric_models(half, axes) for half in emc.models])
        emc.full = emc.models.mean(axis=0)
        # All poses stay, turned such that likenesses lie between them.
        emc.take_group(axes.group)
        emc.enter(0, is_new=False)  # to spread frames once more would lose what is known
    emc.course.tries_symmetry = True
    return f"The intensity looks alike after the rotations of {axes.group}: is that its symmetry?"


def settle_symmetry(emc: "Emc") -> tuple[bool, str]:
    """Keep symmetric models that have settled, or go back to those without; whether, and a sentence."""
    before, emc.course.tries_symmetry = emc.candidates.pop(), False
    with logged("symmetry"):
        gains = ask_sentinels(emc).evidence - np.asarray(before["evidence"])
    is_kept, words = judge_symmetry(emc, gains)
    if is_kept:
        emc.candidates, emc.course.has_start = [], True
    else:
        emc.take_group(PointGroup())
        emc.enter(0, is_new=False)
        emc.take_learnt(before)
        emc.course.last_log_likelihood = float(before["log_likelihood"])
    return is_kept, words


def look_for_symmetry(emc: "Emc") -> SymmetryAxes | None:
    """The largest symmetry after whose rotations the models look about as alike as after those of any."""
    known = emc.mesh.all.bcast(_known_shells(emc))
    if len(known) < _FEWEST_SHELLS:
        return None
    shells = {"first_shell": known[0], "last_shell": known[-1]}
    model = to_numpy(emc.models[:, 0].mean(axis=0)).astype(np.float64)
    found = emc.mesh.all.bcast([find_axes(model, PointGroup(name), **shells) for name in POLYHEDRA])
    least = max(_LEAST_CORRELATION, _AS_MUCH * max(axes.correlation for axes in found))
    return next((axes for axes in found if axes.correlation >= least), None)


def judge_symmetry(emc: "Emc", gains: NDArray[np.float64]) -> tuple[bool, str]:
    """Whether symmetric models that have settled are kept, and one sentence about it.

    gains : by how much sentinels are likelier than with the models before, (S,).
    """
    # What looks like something else has no say, and no frame more than noise can.
    asked = emc.first_weight[emc.sentinel] > 0
    gain, error = mean_and_error(gains[asked].clip(-LARGEST_LOSS, LARGEST_LOSS))
    told = f"with it frames that no model has seen gain {gain:.2g} +- {error:.1g} nats"
    if emc.mesh.all.bcast(gain > -_ALLOWED_ERRORS * error):
        return True, f"The intensity has the symmetry {emc.group}: {told}."
    return False, f"The intensity resembles one of symmetry {emc.group}, which it has not: {told}."


def symmetric_models(models: Array, axes: SymmetryAxes) -> Array:
    """Models (M, n, n, n) float32, turned until their axes lie as the group has them, and averaged."""
    xp = array_namespace(models)
    turned = [xp.nan_to_num(rotate_volume(model, inverse(axes.quaternion)), nan=1.0) for model in models]
    return xp.maximum(xp.stack([symmetric_mean(model, axes.group) for model in turned]), xp.float32(0))


def _known_shells(emc: "Emc") -> range:
    """The shells that the halves agree about, from where bodies cease to be round."""
    stage = emc.work.stage
    first = round(_FIRST_SPECKLES / (emc.diameter_A * stage.voxel_inv_A))
    known = emc.half_correlation[first : int(stage.scored_inv_A / stage.voxel_inv_A) + 1] > _KNOWN
    return range(first, first + (len(known) if known.all() else int(known.argmin())))
