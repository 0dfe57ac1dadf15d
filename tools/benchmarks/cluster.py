"""Many ranks: overhead, balance, faults, shared references."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most, told

_FAULTS = "python bench/faults.py --keep"
_SHARED = "python bench/references.py shared --keep"


def _came_back(result: dict[str, Any]) -> float:
    """Killed jobs that ended with the answer of the one that nobody touched."""
    return sum(
        each["finished"] and not each["other_orientations"] and each["volume_difference"] <= 1e-5
        for each in result["killed"]
    )


def _readers(result: dict[str, Any]) -> float:
    return result["trace"]["in low-contention order, one tile ahead"][
        "windows_with_several_readers_in_a_step"
    ]


def _work_growth(result: dict[str, Any]) -> float:
    """Work of a rank among four over that of one rank alone, groups of one rank."""
    work = {run["mesh"]: run["work_seconds"] for run in result["runs"]}
    return work["1x4"] / work["1x1"]


def _gain_ahead(result: dict[str, Any]) -> float:
    seconds = result["seconds"]
    order = "in low-contention order"
    return seconds[f"{order}, when needed"] / seconds[f"{order}, one tile ahead"]


def _on_ranks(method: str, name: str, device: str, sizes: str) -> Figure:
    """How far volumes on 2, 3 and 4 ranks come from those of one."""
    where, option = ("CPU", "") if device == "cpu" else ("ranks that share one GPU", " --device cuda")
    return Figure(
        f"{name} on 2 to 4 ranks, meshes of 2x1 to 2x2: norm of the difference to one rank, {where}",
        at_most(1e-5),
        f"same_on_ranks_{method}_{device}",
        lambda r: r["largest_volume_error"],
        f"python bench/same_on_ranks.py --cases {method}{option} {sizes} --keep",
        remark=_other_orientations,
    )


def _other_orientations(result: dict[str, Any]) -> str:
    most = max(run["other_orientations"] for run in result["runs"])
    same = sum(run["volume_error"] == 0 for run in result["runs"])
    told = f"{most} orientations are others" if most else "orientations are the same"
    shares = any(run["half_sets"] == "together" and not run["mesh"].endswith("x1") for run in result["runs"])
    apart = "" if shares else "; no two groups share out the frames of a half"
    return f"{same} of {len(result['runs'])} volumes are the same to the bit, and {told}{apart}"


FIGURES = [
    _on_ranks("emc", "EMC", "cpu", "--frames 400 --pixels 28"),
    _on_ranks("mtip", "M-TIP", "cpu", "--frames 400 --pixels 28"),
    _on_ranks("emc", "EMC", "cuda", "--frames 1500 --pixels 48"),
    _on_ranks("mtip", "M-TIP", "cuda", "--frames 800 --pixels 36"),
    Figure(
        "2 ranks × 1 thread over 1 rank × 2 threads, time of an iteration",
        at_most(1.1, "times"),
        "ranks_overhead",
        lambda r: r["ratio"],
        "python bench/ranks.py overhead --keep",
        remark=lambda r: f"{r['processor_ratio']:.2f} times in processor time",
    ),
    Figure(
        "What ranks send over what the model says, deviation",
        at_most(5, "%"),
        "ranks_traffic",
        lambda r: 100 * max(abs(each - 1) for each in r["sent_over_model"]),
        "python bench/ranks.py traffic --keep",
        remark=lambda r: f"largest of {len(r['sent_over_model'])} iterations, {r['frames']} frames",
    ),
    Figure(
        "One rank three times as slow: dynamic over static balance",
        at_least(1.4, "times"),
        "ranks_balance",
        lambda r: r["gain"],
        "python bench/ranks.py balance --pause 0.1 --frames 4000 --level 6 --keep",
        remark=lambda r: f"every piece of work waits {r['pause_s']} s, of the slow rank 3 times as long",
    ),
    Figure(
        "Jobs with a rank killed at a random time that end with the same answer",
        at_least(10, "of 10"),
        "faults_cpu",
        _came_back,
        _FAULTS,
        remark=lambda r: f"{len(r['killed'])} jobs",
    ),
    Figure(
        "A checkpoint of 4 ranks finished on 2, difference of the volume",
        at_most(1e-5),
        "faults_cpu",
        lambda r: r["four_on_two"]["volume_difference"],
        _FAULTS,
    ),
    Figure(
        "262 144 references on 4 ranks: memory against share and buffers, largest deviation",
        at_most(5, "%"),
        "references_shared",
        lambda r: 100 * r["largest_deviation_of_memory"],
        _SHARED,
    ),
    Figure(
        "References read by two ranks from one window in a step",
        at_most(0),
        "references_shared",
        _readers,
        _SHARED,
    ),
    Figure(
        "As many frames for every rank: work of one among 4 over that of one alone",
        told("times"),
        "scaling_weak_cpu",
        _work_growth,
        "python bench/scaling.py weak --keep",
        remark=lambda r: "processor time without waiting; ranks took turns on 2 cores",
    ),
    Figure(
        "From `mpiexec` to the first iteration, 2 ranks",
        told("s"),
        "startup_cpu",
        lambda r: r["seconds"]["2"]["first_step"],
        "python bench/startup.py --keep",
        remark=lambda r: f"{r['seconds']['2']['mpi']:g} s until ranks are joined",
    ),
    Figure(
        "Reading references when they are needed over reading one tile ahead, 2 ranks",
        told("times"),
        "references_ahead",
        _gain_ahead,
        "python bench/references.py ahead --keep",
    ),
]
