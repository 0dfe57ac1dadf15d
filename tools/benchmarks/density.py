"""From the intensity to a density that is believed."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most

_WHOLE_WAY = "python bench/density.py --device cuda --keep"
_PHASE = "python bench/phase.py --keep"


def _volume_error(result: dict[str, Any]) -> float:
    """The largest deviation of the volume of the particle, in per cent."""
    return 100 * max(abs(each["particle_over_true"] - 1) for each in result["success"])


def _support_error(result: dict[str, Any]) -> float:
    """The largest deviation of the volume of the support that was chosen, in per cent."""
    return 100 * max(abs(each["support_over_true"] - 1) for each in result["success"])


def _found(result: dict[str, Any]) -> float:
    """Starts that found the density, in per cent, of the object with the fewest."""
    return 100 * min(each["found"] for each in result["success"])


def _worst(result: dict[str, Any], name: str) -> float:
    """The largest of all runs; a run that gave up has none, which is worse than any."""
    return max(run.get(name) or float("inf") for run in result["runs"])


def _slowest(result: dict[str, Any]) -> float:
    """The longest time of the runs for which kernels had been compiled before."""
    return _worst({"runs": [run for run in result["runs"] if not run.get("compiles")]}, "seconds")


def _runs(runs: list[Any]) -> str:
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}"


def _timed_runs(runs: list[Any]) -> str:
    """How many were timed, and what those took that compiled kernels."""
    compiling = [f"{run['seconds']:.0f} s" for run in runs if run.get("compiles")]
    timed = len(runs) - len(compiling)
    if not compiling:
        return f"{_runs(runs)}, none of which compiled kernels"
    return f"{timed} of {_runs(runs)}; the others compiled kernels, too: {' and '.join(compiling)}"


FIGURES = [
    Figure(
        "Frames to a validated density of 3IYF, 10 000 frames of 2 000 photons, by `go_the_whole_way` of the "
        "Python interface: slowest of the runs that compiled no kernels",
        at_most(30, "s"),
        "density_cuda",
        _slowest,
        _WHOLE_WAY,
        remark=lambda r: _timed_runs(r["runs"]),
        plain="From a file of 10 000 frames of a chaperonin (3IYF) to a validated density, by "
        "`go_the_whole_way` in Python, one GPU",
    ),
    Figure(
        "The same runs, resolution at FSC 0.5 against the atoms: worst run",
        at_most(12.2, "Å"),
        "density_cuda",
        lambda r: _worst(r, "resolution_A"),
        _WHOLE_WAY,
        remark=lambda r: _runs(r["runs"]),
        plain="Resolution of these densities (2 000 photons per frame) against the atoms, the worst run",
        published="SpiniFEL: 13.7 Å (Shah et al.)",
    ),
    Figure(
        "The same runs, FSC at the edge: worst run",
        at_least(0.85),
        "density_cuda",
        lambda r: min(run.get("at_edge", 0.0) for run in r["runs"]),
        _WHOLE_WAY,
        remark=lambda r: _runs(r["runs"]),
    ),
    Figure(
        "Phasing, 100 starts × 1 000 iterations of 128³, GPU",
        at_most(20, "s"),
        "phase_cuda",
        lambda r: r["speed"]["seconds"],
        "python bench/phase.py --device cuda --parts speed --keep",
        limit=lambda r: f"{100 * r['speed']['share_of_the_ffts']:.0f} % of the time are the FFTs",
    ),
    Figure(
        "Phasing, 10 starts × 500 iterations of 64³, CPU",
        at_most(60, "s"),
        "phase_cpu",
        lambda r: r["speed"]["seconds"],
        _PHASE,
        limit=lambda r: f"{100 * r['speed']['share_of_the_ffts']:.0f} % of the time are the FFTs",
    ),
    Figure(
        "Starts that find the density, missing centre and 10 % noise, worst object",
        at_least(90, "%"),
        "phase_cpu",
        _found,
        _PHASE,
        remark=lambda r: f"{len(r['success'])} objects",
    ),
    Figure(
        "Volume of the particle against the truth, worst object",
        at_most(5, "%"),
        "phase_cpu",
        _volume_error,
        _PHASE,
    ),
    Figure(
        "Volume of the chosen support against that of the particle, worst object",
        at_most(5, "%"),
        "phase_cpu",
        _support_error,
        _PHASE,
        remark=lambda r: ", ".join(f"{row['object']} {row['support_over_true']:.2f}" for row in r["success"]),
        because={"2026-11-20": "the support holds the soft rims of the particles, too"},
    ),
    Figure(
        "Aligning two densities of 65³: worst error of the rotation",
        at_most(0.3, "°"),
        "compare_cpu",
        lambda r: r["error"]["worst_rotation_deg"],
        "python bench/compare.py --keep",
        remark=lambda r: r["problem"],
    ),
    Figure(
        "Wrong hands among 50 aligned densities",
        at_most(0, "of 50"),
        "compare_cpu",
        lambda r: r["error"]["wrong_hands"],
        "python bench/compare.py --keep",
    ),
    Figure(
        "Time of the slowest of 50 alignments",
        at_most(10, "s"),
        "compare_cpu",
        lambda r: r["seconds"]["most"],
        "python bench/compare.py --keep",
        remark=lambda r: f"{r['processor_seconds']['most']:g} s of processor time",
    ),
    Figure(
        "Fourier shell correlation of 256³, GPU",
        at_most(5, "ms"),
        "compare_cuda",
        lambda r: 1000 * r["fsc_256_seconds"],
        "python bench/compare.py --device cuda --keep",
    ),
]
