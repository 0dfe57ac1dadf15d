"""Traffic: what ranks send in an iteration, part by part.

R ranks form G groups of g = R / G.  A group owns a part of the frames, and its ranks divide the orientations
among themselves.  With N frames, h halves, M models, K rows in all (poses of all models) and n^3 voxels,
every rank takes part in

    tops          rows   of a group, 3 x 8 bytes of every frame of the group: its best row
    sums          sum    of a group, 2 x 8 bytes of every frame: evidence and entropy below the best
    counts        sum    of a group, 129 x 4 bytes of every frame: how many rows lie how far below the best
    kept, expected  sum  of a group, 8 bytes of every frame each
    table         rows   of all, 81 + 8 M bytes of every frame that a rank has: pose, likelihood, ...
    deposits      sum    of all, for every half 16 M n^3 bytes (values and weights) and 8 K (mass of rows)
    temperature   rows   of all, 4 x 128 bytes of every row: scores of a few frames

with M-TIP, whose models are those of one rank,

    models        bcast  of all, for every half 8 M bytes of every voxel of the autocorrelation; while that is
                         phased, the same again and 20 M of every voxel of the box: 4 densities and supports

and, if the models of both halves orient S sentinels, and in the first iteration of a stage, also in

    sentinels     rows and sums of a group, as of h S frames, and 32 x 12 bytes: its likeliest rows
    their poses   rows   of all, 177 + 8 (M - 1) bytes of every sentinel that a rank has
    samples       rows   of all, the frames from which temperature and noise are taken, as they were read

With r ranks that take part, a rank sends 2 (r - 1) / r times the array in a sum, and (r - 1) times its own
rows when rows are gathered.  In a bcast one rank sends (r - 1) times the array; here the mean of all ranks
counts.  Other, rare collectives (judging frames, final refinement) are not counted.
"""

from dataclasses import dataclass

from orienteer.mtip.loop_phasing import coarse_grid
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.scaling.network import Collective, gathered, sent_to_all, summed
from orienteer.scaling.problem import Problem

# Bytes of a frame in each collective of the table above.
_TOPS, _SUMS, _COUNTS, _KEPT, _EXPECTED = 3 * 8, 2 * 8, 129 * 4, 8, 8
_TABLE, _TABLE_OF_MODEL = 8 + 32 + 5 * 8 + 1, 8
# Bytes of a voxel and of a row in the deposit of a half.
_VOXEL, _ROW = 16, 8
# Bytes of a voxel of an autocorrelation, and of one of all densities and supports that follow it.
_AUTOCORRELATION, _DENSITIES = 8, 4 * (4 + 1)
# Frames whose scores set the temperature, and bytes of a score.
_SAMPLED, _SCORE = 128, 4
# Bytes of a sentinel: of the likeliest rows that a rank names at most, and of its poses and gains.
_LISTED, _WATCHED = 32 * 12, 8 + 2 * 32 + 2 * 8
# Frames of each half that all ranks read, for the noise and for a second pass; bytes that identify a frame.
_LOOKED_AT, _NAMES = (256, 16), 16


@dataclass(frozen=True)
class Traffic:
    """What one rank sends in an iteration, by purpose.

    within : among the ranks of its group; across : among all ranks.
    """

    within: dict[str, Collective]
    across: dict[str, Collective]

    @property
    def n_bytes(self) -> float:
        """All bytes that the rank sends."""
        return sum(each.n_bytes for part in (self.within, self.across) for each in part.values())

    @property
    def by_part(self) -> dict[str, float]:
        """Bytes of each part."""
        return {name: each.n_bytes for part in (self.within, self.across) for name, each in part.items()}


def traffic_of(
    problem: Problem, group_size: int, n_groups: int, batch_frames: float = float("inf"), stride: int = 1,
    *, sentinels: int = 0, frame_bytes: float = 0.0, phases: bool = True,
) -> Traffic:  # fmt: skip
    """What a rank of a mesh sends in an iteration at the finest grid.

    group_size : ranks that share the orientations of the same frames; n_groups : number of such groups.
    batch_frames : frames that are normalised together; determines the number of messages.
    stride : the temperature uses every ``stride``-th row; up to 8 while posteriors are wide.
    sentinels : frames oriented in addition to those of the problem; all of them every fifth iteration.
    frame_bytes : of a frame as it was read, for the first iteration of a stage; 0: for any other iteration.
    phases : whether M-TIP has begun to phase.
    """
    n_ranks = group_size * n_groups
    frames = problem.n_frames / n_groups
    batches = problem.n_halves * max(1.0, -(-frames // problem.n_halves) / batch_frames)

    def of_batches(whole: Collective) -> Collective:
        return Collective(whole.messages * batches, whole.n_bytes)

    within = {
        "tops": of_batches(gathered(_TOPS * frames, group_size)),
        "sums": of_batches(summed(_SUMS * frames, group_size)),
        "counts": of_batches(summed(_COUNTS * frames, group_size)),
        "kept": of_batches(summed(_KEPT * frames, group_size)),
        "expected": of_batches(summed(_EXPECTED * frames, group_size)),
    }
    row = _TABLE + _TABLE_OF_MODEL * problem.n_models
    table = gathered(row * problem.n_frames / n_ranks, n_ranks)
    half = summed(_VOXEL * problem.n_voxels, n_ranks) * problem.n_models
    mass = summed(_ROW * problem.n_rows, n_ranks)
    across = {
        "table": Collective(table.messages * problem.n_halves, table.n_bytes),
        "deposits": half * problem.n_halves + mass * problem.n_halves,
        "temperature": gathered(_SCORE * _SAMPLED * problem.n_rows / stride / n_ranks, n_ranks),
    }
    if problem.method == "mtip":
        models = _bytes_of_autocorrelation(problem, phases=phases) * problem.n_models * problem.n_halves
        across["models"] = sent_to_all(models, n_ranks)
    if sentinels:
        own = problem.n_halves * sentinels / n_groups
        within["sentinels"] = (
            gathered((_TOPS + _LISTED) * own, group_size)
            + summed((_SUMS + _COUNTS + _KEPT) * own, group_size)
        )  # fmt: skip
        across["their poses"] = gathered((_WATCHED + row) * sentinels / n_ranks, n_ranks)
    if frame_bytes:
        of_half = problem.n_frames // problem.n_halves
        of_halves = problem.n_halves * sum(min(each, of_half) for each in _LOOKED_AT)
        looked_at = min(_SAMPLED, of_half) + of_halves
        across["samples"] = gathered(looked_at * (frame_bytes + _NAMES) / n_ranks, n_ranks)
    return Traffic(within, across)


def _bytes_of_autocorrelation(problem: Problem, *, phases: bool) -> float:
    """Bytes of a model of a half, with all that phasing keeps of it."""
    grid = RelativeGrid(problem.edge_voxels, 1.0, 1 / problem.oversampling, "cpu")
    voxels = float(grid.n) ** 3
    if not phases:
        return _AUTOCORRELATION * voxels
    return 2 * _AUTOCORRELATION * voxels + _DENSITIES * float(coarse_grid(grid).box) ** 3
