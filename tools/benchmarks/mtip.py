"""M-TIP, and particles in several states."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most, share

_STATES = "python bench/conformations.py --device cuda --keep"


def _right(case: str) -> Any:
    """Frames in the right state, in per cent, in the worst run of a case."""

    def value(result: dict[str, Any]) -> float | None:
        runs = [run for run in result["runs"] if run["case"] == case]
        return 100 * min(run.get("frames_right", 0.0) for run in runs) if runs else None

    return value


def _chosen_right(result: dict[str, Any]) -> float | None:
    """Runs that chose the number of states right, in per cent."""
    runs = [run for run in result["runs"] if run["case"].startswith("auto-")]
    right = [run.get("models") == int(run["case"].removeprefix("auto-")) for run in runs]
    return 100 * sum(right) / len(right) if right else None


def _coarsest_map(result: dict[str, Any]) -> float | None:
    """The worst resolution of the maps of two states at 1 000 photons; no map counts as endless."""
    runs = [run for run in result["runs"] if run["case"] == "two-1000"]
    states = [state for run in runs for state in run.get("states", [{}])]
    return max(state.get("resolution_A") or float("inf") for state in states) if states else None


def _matching(result: dict[str, Any]) -> float | None:
    of_numbers = {
        int(key.split()[0]): value for key, value in result.items() if key.endswith(" orientations")
    }
    return of_numbers[1_048_576]["seconds"] if 1_048_576 in of_numbers else None


FIGURES = [
    Figure(
        "3IYF, 10 000 frames of 1 000 photons, blind: runs with 12.2 Å against the atoms within 3 minutes",
        at_least(100, "%"),
        "mtip_blind_cuda",
        lambda r: share(r["successes"]["mtip"]),
        "python bench/mtip.py blind --device cuda --seeds 5 --keep",
        remark=lambda r: f"{r['successes']['mtip']} runs; {r['problem']}",
        shown_first=True,
        published="SpiniFEL: 13.7 Å (Shah et al.)",
    ),
    Figure(
        "Matching 1 048 576 orientations with 2 500 frames of 16 384 pixels, GPU",
        at_most(1, "s"),
        "mtip_matching_cuda",
        _matching,
        "python bench/mtip.py matching --device cuda --keep",
        shown_first=True,
    ),
    *(
        Figure(
            f"Merging 10 000 frames of 128² pixels into {n}³ voxels, 10 regularisations, 100 iterations, GPU",
            at_most(2, "s"),
            "merging_cuda",
            lambda r, n=n: (r.get(f"{n}^3") or {}).get("merge_mixed"),
            "python bench/merging.py --device cuda --keep",
        )
        for n in (81, 151)
    ),
    Figure(
        "Two states mixed 1:1, frames in the right one, 100 photons",
        at_least(99.9, "%"),
        "conformations_cuda",
        _right("two-100"),
        _STATES,
        shown_first=True,
    ),
    Figure(
        "Two states mixed 1:1, frames in the right one, 50 photons",
        at_least(98.5, "%"),
        "conformations_cuda",
        _right("two-50"),
        _STATES,
        shown_first=True,
    ),
    Figure(
        "Two states mixed 1:1, resolution of both maps, 1 000 photons",
        at_most(14, "Å"),
        "conformations_cuda",
        _coarsest_map,
        _STATES,
    ),
    Figure(
        "Number of states (1, 2 and 3) chosen right from the data",
        at_least(100, "%"),
        "conformations_cuda",
        _chosen_right,
        _STATES,
    ),
]
