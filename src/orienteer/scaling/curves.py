"""Curves: time as a function of the number of ranks, and how many frames a number of ranks can hold."""

from collections.abc import Iterable

from orienteer.errors import OrienteerError
from orienteer.scaling.machines import Machine
from orienteer.scaling.prediction import Prediction, best_mesh, predict
from orienteer.scaling.problem import Problem

# Numbers of ranks at which curves are drawn.
RANKS = tuple(2**power for power in range(13))


def strong(problem: Problem, machine: Machine, ranks: Iterable[int] = RANKS) -> list[Prediction]:
    """Strong scaling: the same problem on more and more ranks, each time on the best mesh."""
    return [best_mesh(problem, machine, n) for n in ranks if n <= problem.n_frames]


def weak(problem: Problem, machine: Machine, ranks: Iterable[int] = RANKS) -> list[Prediction]:
    """Weak scaling: more and more ranks, each with as many frames as the problem has."""
    return [best_mesh(problem.with_frames(problem.n_frames * n), machine, n) for n in ranks]


def efficiency(curve: list[Prediction]) -> list[float]:
    """Time that a rank alone would need for its part of the work, over the time it needs among others.

    curve : of strong or weak scaling; its first point is the reference.
    """
    first = curve[0]
    alone = first.seconds * first.n_ranks / first.problem.n_frames
    return [alone * each.problem.n_frames / (each.n_ranks * each.seconds) for each in curve]


def largest_frames(problem: Problem, machine: Machine, n_ranks: int) -> Prediction:
    """The largest number of frames like these that the devices of ``n_ranks`` ranks can hold, each once.

    More frames can be reconstructed as well: they are kept in host memory or on disk, and copied or read in
    every iteration.  But the table of all frames is a hard limit, since every rank keeps it whole in host
    memory.
    """
    if not _holds(problem.with_frames(n_ranks), machine, n_ranks):
        raise OrienteerError(
            f"the models and orientations alone do not fit into {machine.memory_GiB:.3g} GiB.",
            "Plan fewer orientations, or a lower resolution.",
        )
    low, high = n_ranks, 2 * n_ranks
    while _holds(problem.with_frames(high), machine, n_ranks):
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        if _holds(problem.with_frames(middle), machine, n_ranks):
            low = middle
        else:
            high = middle
    return predict(problem.with_frames(low), machine, 1, n_ranks)


def largest(problem: Problem, machine: Machine, ranks: Iterable[int]) -> list[Prediction]:
    """For each number of ranks, as many frames as they can hold, on the fastest mesh."""
    return [best_mesh(largest_frames(problem, machine, n).problem, machine, n) for n in ranks]


def _holds(problem: Problem, machine: Machine, n_ranks: int) -> bool:
    each = predict(problem, machine, 1, n_ranks)
    return each.fits and each.frames_on_device
