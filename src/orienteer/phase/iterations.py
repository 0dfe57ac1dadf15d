"""The iterations of phase retrieval: error reduction, hybrid input-output, RAAR and the difference map.

Let p be the projection of the iterate x onto the data.  All methods except the general difference map set x
to p in voxels that satisfy the constraints, and to a mixture of x and p in all others.  They differ in that
mixture, and in the value that must satisfy the constraints:

    error reduction           0                                   p
    hybrid input-output       x - beta p                          p
    RAAR                      beta x + (1 - 2 beta) p             2 p - x
    difference map, beta = 1  x - p                               2 p - x

References: Fienup (1982), hybrid input-output; Elser (2003), difference map; Luke (2005), relaxed averaged
alternating reflections.
"""

from collections.abc import Callable

from orienteer.phase.constraints import project_support
from orienteer.phase.data import PhasingData
from orienteer.phase.projection import project_modulus, relax
from orienteer.phase.schedule import MethodName
from orienteer.phase.state import PhaseState


def er(state: PhaseState, data: PhasingData, beta: float = 0.0) -> PhaseState:
    """Error reduction: the nearest density that obeys the constraints.  It finds the nearest minimum."""
    return _step(state, data, keep=0.0, add=0.0, reflect=0.0)


def hio(state: PhaseState, data: PhasingData, beta: float = 0.9) -> PhaseState:
    """Hybrid input-output: where constraints are violated, beta times the projection is subtracted."""
    return _step(state, data, keep=1.0, add=-beta, reflect=0.0)


def raar(state: PhaseState, data: PhasingData, beta: float = 0.87) -> PhaseState:
    """Relaxed averaged alternating reflections: leaves wrong minima like the difference map, but settles."""
    return _step(state, data, keep=beta, add=1 - 2 * beta, reflect=1.0)


def dm(state: PhaseState, data: PhasingData, beta: float = 1.0) -> PhaseState:
    """Difference map; with a beta other than 1 it projects onto the data twice, and takes twice the time."""
    if beta == 1.0:
        return _step(state, data, keep=1.0, add=-1.0, reflect=1.0)
    x = state.density
    allowed = project_support(x, state.support, state.positive)
    # Extrapolate both by 1 / beta: the allowed density towards x, the projection onto the data away from x.
    other = project_modulus(allowed - (allowed - x) / beta, state.background, data)
    projected = project_modulus(x, state.background, data)
    first = project_support(projected + (projected - x) / beta, state.support, state.positive)
    x += beta * (first - other)
    return state


def _step(state: PhaseState, data: PhasingData, keep: float, add: float, reflect: float) -> PhaseState:
    projected = project_modulus(state.density, state.background, data)
    relax(state.density, projected, state.support, keep, add, reflect, state.positive)
    return state


METHODS: dict[MethodName, Callable[[PhaseState, PhasingData, float], PhaseState]] = {
    "er": er,
    "hio": hio,
    "raar": raar,
    "dm": dm,
}
