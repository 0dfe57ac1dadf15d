"""Find a symmetry that was not given: try it if the models show it, and keep it unless sentinels contradict.

A particle with the symmetry I looks the same from sixty sides.  A run that does not know this has a sixtieth
of the photons for each voxel, and never finds the poses of faint frames of a nearly round particle.  The axes
are easy to find, even in an intensity that is half noise, because all voxels together determine three angles.
The models are then made symmetric on trial and settle again, and the sentinels decide.

A noisy model without the symmetry offers each frame sixty equivalent poses, one of which fits its photons by
chance: what the model loses by noise it nearly regains by this choice.  So a real symmetry makes faint frames
hardly likelier, and a symmetry is kept unless the sentinels become less likely.  A false one, such as that of
a virus with one corner unlike the others, costs many nats.

The grid keeps all its poses, turned so that none are equivalent: they sample orientations about as finely as
a reduced grid with sixty times as many poses would.

Only the symmetries of polyhedra are looked for.  Such particles are nearly round, and this is quick to check:
near the centre their intensity has no quadrupole, which dominates there for most other bodies.
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

# Shells are used if the halves correlate by at least this, and from this many speckles outwards: nearer to
# the centre every body is round.
_KNOWN, _FIRST_SPECKLES = 0.5, 2.0
# Fewest shells that are enough.  Least mean correlation of an intensity with itself after the rotations of a
# group for that group to be tried; and as a share of that of the best group.  (A virus had 0.85 with I and T,
# and 0.49 with O.)
_FEWEST_SHELLS, _LEAST_CORRELATION, _AS_MUCH = 6, 0.2, 0.8
# A symmetry is kept if sentinels become less likely by at most this many standard errors.
_ALLOWED_ERRORS = 1.0


def seeks_symmetry(emc: "Emc") -> bool:
    """Whether to look for a symmetry now that a start has settled: once per start, if it is nearly round."""
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
    # Models may differ in their last bits from rank to rank, but all ranks must decide alike.
    return may_seek and emc.mesh.all.bcast(
        len(_known_shells(emc)) >= _FEWEST_SHELLS and is_nearly_round(emc.models, emc.speckle)
    )


def try_symmetry(emc: "Emc") -> str:
    """Begin the first stage again with symmetric models, if they show a symmetry; returns a sentence then."""
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
        # The grid keeps all poses, turned so that their equivalents lie between them.
        emc.take_group(axes.group)
        emc.enter(0, is_new=False)  # spreading the frames over many poses again would lose what is known
    emc.course.tries_symmetry = True
    return f"The intensity looks the same after the rotations of {axes.group}: is that its symmetry?"


def settle_symmetry(emc: "Emc") -> tuple[bool, str]:
    """Keep symmetric models that have settled, or return to those before; whether they are kept, and why."""
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
    """The largest group that the models fit about as well as the group that fits best; None if none fits."""
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

    gains : (S,) by how many nats the symmetric models make each sentinel likelier than the models before.
    """
    # Frames that look like something else are left out, and each gain is limited: no single frame decides.
    asked = emc.first_weight[emc.sentinel] > 0
    gain, error = mean_and_error(gains[asked].clip(-LARGEST_LOSS, LARGEST_LOSS))
    told = f"with it, frames that no model has seen gain {gain:.2g} +- {error:.1g} nats"
    if emc.mesh.all.bcast(gain > -_ALLOWED_ERRORS * error):
        return True, f"The intensity has the symmetry {emc.group}: {told}."
    return False, f"The intensity resembles one with the symmetry {emc.group}, but does not have it: {told}."


def symmetric_models(models: Array, axes: SymmetryAxes) -> Array:
    """Models (M, n, n, n) float32, turned to the axes of the group's definition and averaged over it."""
    xp = array_namespace(models)
    turned = [xp.nan_to_num(rotate_volume(model, inverse(axes.quaternion)), nan=1.0) for model in models]
    return xp.maximum(xp.stack([symmetric_mean(model, axes.group) for model in turned]), xp.float32(0))


def _known_shells(emc: "Emc") -> range:
    """The shells that the halves agree about, from the radius at which bodies cease to be round."""
    stage = emc.work.stage
    first = round(_FIRST_SPECKLES / (emc.diameter_A * stage.voxel_inv_A))
    known = emc.half_correlation[first : int(stage.scored_inv_A / stage.voxel_inv_A) + 1] > _KNOWN
    return range(first, first + (len(known) if known.all() else int(known.argmin())))
