"""From the intensity to a density that is believed."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most, share

_WHOLE_WAY = "python bench/density.py --device cuda --keep"
_PHASE = "python bench/phase.py --keep"


def _volume_error(result: dict[str, Any]) -> float:
    """The largest deviation of the volume of the particle, in per cent."""
    return 100 * max(abs(each["particle_over_true"] - 1) for each in result["success"])


def _found(result: dict[str, Any]) -> float:
    """Starts that found the density, in per cent, of the object with the fewest."""
    return 100 * min(each["found"] for each in result["success"])


FIGURES = [
    Figure(
        "Frames to a validated density of 3IYF, 10 000 frames of 2 000 photons, blind: runs within 30 s",
        at_least(100, "%"),
        "density_cuda",
        lambda r: share(r["in_time"]),
        _WHOLE_WAY,
        remark=lambda r: f"{r['in_time']} runs",
        shown_first=True,
    ),
    Figure(
        "Runs of that kind with 12.2 Å at FSC 0.5 against the atoms, and 0.85 at the edge",
        at_least(100, "%"),
        "density_cuda",
        lambda r: share(r["successes"]),
        _WHOLE_WAY,
        remark=lambda r: f"{r['successes']} runs",
        shown_first=True,
        published="SpiniFEL: 13.7 Å (Shah et al.)",
    ),
    Figure(
        "Phasing, 100 starts × 1 000 iterations of 128³, GPU",
        at_most(20, "s"),
        "phase_cuda",
        lambda r: r["speed"]["seconds"],
        "python bench/phase.py --device cuda --parts speed --keep",
        limit=lambda r: f"{100 * r['speed']['share_of_the_ffts']:.0f} % of the time are the FFTs",
        shown_first=True,
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
