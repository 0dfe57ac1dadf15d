"""Prediction: seconds, memory and traffic of one iteration on many ranks, and the best mesh for it.

Ranks share slices, scores and merges, but each rank makes all the new models:

    seconds = orienting of N / G frames against K / g rows  +  judging of N / R frames
              + new models  +  collectives

Orienting takes less time on more ranks; new models (and M-TIP's phasing) do not, and collectives take more.
The model assumes that the work is spread evenly, and that nothing overlaps.
"""

from dataclasses import dataclass, replace

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.reconstruction.plan import Memory, make_plan
from orienteer.scaling.machines import Machine
from orienteer.scaling.problem import Problem, work_of
from orienteer.scaling.traffic import Traffic, traffic_of

# Bytes of a frame in the table that every rank keeps in host memory: poses, fluence, likelihood, identity.
TABLE_BYTES = 250
# Cost of the new models of a half, in real transforms of the whole cube: fitted to real runs on the CPU
# (bench/results/scaling_stages_cpu.json), and assumed to be the same number on a GPU.
EMC_TRANSFORMS, MTIP_TRANSFORMS, PHASE_TRANSFORMS = 32.0, 492.0, 163.0


@dataclass(frozen=True)
class Prediction:
    """One iteration of a problem on a mesh of ranks.

    group_size, n_groups : ranks that share the orientations of the same frames, and number of such groups.
    batch_frames, tile_rows : frames and orientations that are compared at once, as a run would plan them.
    stages : seconds of each stage.
    memory : of a rank, on its device; traffic : what a rank sends.
    frames_on_device : whether a rank keeps its frames on its device; if not, the host sends them in batches.
    why : one sentence that explains the choice of the mesh.
    """

    problem: Problem
    machine: Machine
    group_size: int
    n_groups: int
    batch_frames: int
    tile_rows: int
    stages: dict[str, float]
    memory: Memory
    traffic: Traffic
    frames_on_device: bool = True
    why: str = ""

    @property
    def n_ranks(self) -> int:
        """Ranks in all."""
        return self.group_size * self.n_groups

    @property
    def seconds(self) -> float:
        """Seconds of an iteration at the finest grid."""
        return sum(self.stages.values())

    @property
    def memory_GiB(self) -> float:
        """Most memory that a rank needs on its device."""
        return self.memory.total / 2**30

    @property
    def fits(self) -> bool:
        """Whether the memory of a rank is enough, on its device and for the table of all frames."""
        return self.memory_GiB <= self.machine.memory_GiB and self.table_GiB <= self.machine.host_GiB

    @property
    def table_GiB(self) -> float:
        """Host memory of the table of all frames, which every rank has."""
        return TABLE_BYTES * self.problem.n_frames / 2**30

    @property
    def mesh(self) -> str:
        """The mesh in the form of the setting ``mesh`` of a run."""
        return f"{self.group_size}x{self.n_groups}"


def predict(problem: Problem, machine: Machine, group_size: int = 1, n_groups: int = 1) -> Prediction:
    """An iteration on a given mesh."""
    n_ranks = group_size * n_groups
    if n_ranks > problem.n_frames:
        raise OrienteerError(
            f"{counted(n_ranks, 'rank')} cannot share {counted(problem.n_frames, 'frame')}.",
            "Plan fewer nodes.",
        )
    frames, rows = -(-problem.n_frames // n_groups), -(-problem.n_rows // group_size)
    plan = make_plan(
        machine.device, frames, problem.n_pixels, rows, problem.edge_voxels, problem.lit_share, 100.0, True,
        largest_square=1000.0, n_models=problem.n_models, n_halves=problem.n_halves,
        free_GiB=machine.memory_GiB,
    )  # fmt: skip
    is_listed = plan.layout == "sparse"
    work = work_of(problem, frames, rows, plan.batch_frames, is_listed=is_listed)
    stages = machine.rates.seconds(work)
    stages["judge"] = machine.judge_s * problem.n_frames / n_ranks * problem.n_pixels
    transform = machine.rates.transform_s * work.voxels
    if problem.method == "mtip":
        stages["solve"] = MTIP_TRANSFORMS * transform
        stages["phase"] = PHASE_TRANSFORMS * transform
    else:
        stages["solve"] = EMC_TRANSFORMS * transform
    traffic = traffic_of(problem, group_size, n_groups, plan.batch_frames)
    stages["collectives"] = _collectives(machine, traffic, group_size, n_groups)
    return Prediction(
        problem,
        machine,
        group_size,
        n_groups,
        plan.batch_frames,
        plan.tile_rows,
        stages,
        plan.memory,
        traffic,
        plan.frames_on_device,
    )


def _collectives(machine: Machine, traffic: Traffic, group_size: int, n_groups: int) -> float:
    near = machine.near if group_size <= machine.ranks_per_node else machine.network
    far = machine.near if group_size * n_groups <= machine.ranks_per_node else machine.network
    seconds = sum(each.seconds(near) for each in traffic.within.values())
    seconds += sum(each.seconds(far) for each in traffic.across.values())
    if machine.copy_bandwidth:  # data are copied from the device before sending, and to it after receiving
        seconds += 2 * traffic.n_bytes / machine.copy_bandwidth
    return seconds


def best_mesh(problem: Problem, machine: Machine, n_ranks: int) -> Prediction:
    """The fastest mesh of ``n_ranks`` ranks that fits into memory; if none fits, the one that needs least."""
    sizes = [size for size in range(1, n_ranks + 1) if n_ranks % size == 0]
    tried = [predict(problem, machine, size, n_ranks // size) for size in sizes]
    fitting = [each for each in tried if each.fits]
    best = min(fitting or tried, key=lambda each: each.seconds if fitting else each.memory_GiB)
    return _explained(best, tried)


def _explained(best: Prediction, tried: list[Prediction]) -> Prediction:
    """The prediction with a sentence that says why its mesh was taken."""
    ends = [each for each in (tried[0], tried[-1]) if each.group_size != best.group_size]
    words = _in_words(best.n_groups, best.group_size)
    if not best.fits:
        why = (
            f"no mesh fits; {words} would need least memory, {best.memory_GiB:.3g} GiB, but a rank has "
            f"{best.machine.memory_GiB:.3g} GiB."
        )
    elif not ends:
        why = f"{words}; there is no other."
    else:
        others = [
            f"{_in_words(each.n_groups, each.group_size)} would "
            + (f"take {each.seconds:.3g} s" if each.fits else f"need {each.memory_GiB:.3g} GiB")
            for each in ends
        ]
        why = f"{words}, {best.seconds:.3g} s an iteration; {', '.join(others)}."
    return replace(best, why=why)


def _in_words(n_groups: int, group_size: int) -> str:
    groups = counted(n_groups, "group")
    return f"{groups} of {group_size:,} rank{'s' if group_size > 1 else ''}"
