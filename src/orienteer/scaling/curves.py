"""Curves: how time goes with the number of ranks, and how many frames so many ranks can hold."""

from collections.abc import Iterable

from orienteer.errors import OrienteerError
from orienteer.scaling.machines import Machine
from orienteer.scaling.prediction import Prediction, best_mesh, predict
from orienteer.scaling.problem import Problem

# Numbers of ranks at which curves are drawn.
RANKS = tuple(2**power for power in range(13))


def strong(problem: Problem, machine: Machine, ranks: Iterable[int] = RANKS) -> list[Prediction]:
    """The same problem on more and more ranks, each time on the best mesh."""
    return [best_mesh(problem, machine, n) for n in ranks if n <= problem.n_frames]


def weak(problem: Problem, machine: Machine, ranks: Iterable[int] = RANKS) -> list[Prediction]:
    """As many frames for every rank as the problem has, on more and more ranks."""
    return [best_mesh(problem.with_frames(problem.n_frames * n), machine, n) for n in ranks]


def efficiency(curve: list[Prediction]) -> list[float]:
    """Share of its time that each rank would need alone for its part; of a strong or a weak curve."""
    first = curve[0]
    alone = first.seconds * first.n_ranks / first.problem.n_frames
    return [alone * each.problem.n_frames / (each.n_ranks * each.seconds) for each in curve]


def largest_frames(problem: Problem, machine: Machine, n_ranks: int) -> Prediction:
    """The largest number of frames like these that the devices of so many ranks can hold, each once.

    More frames than that are no obstacle: they wait in host memory or on disk and are copied or read in every
    iteration.  The table of all frames is one: every rank keeps it whole in host memory.
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
    """As many frames as so many ranks can hold, each time on the mesh that takes least time."""
    return [best_mesh(largest_frames(problem, machine, n).problem, machine, n) for n in ranks]


def _holds(problem: Problem, machine: Machine, n_ranks: int) -> bool:
    each = predict(problem, machine, 1, n_ranks)
    return each.fits and each.frames_on_device
