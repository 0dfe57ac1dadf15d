"""M-TIP, and particles in several states."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most, share, told

_STATES = "python bench/conformations.py --device cuda --keep"


def _right(case: str) -> Any:
    """Frames in the right state, in per cent, in the worst run of a case."""

    def value(result: dict[str, Any]) -> float | None:
        runs = [run for run in result["runs"] if run["case"] == case]
        return 100 * min(run.get("frames_right", 0.0) for run in runs) if runs else None

    return value


def _chosen_right(result: dict[str, Any]) -> float | None:
    """Runs that chose the number of states right, in per cent; None before each number was tried."""
    runs = [run for run in result["runs"] if run["case"].startswith("auto-")]
    if len({run["case"] for run in runs}) < 3:
        return None
    right = [run.get("models") == int(run["case"].removeprefix("auto-")) for run in runs]
    return 100 * sum(right) / len(right) if right else None


def _coarsest_map(result: dict[str, Any]) -> float | None:
    """The worst resolution of the maps of two states at 1 000 photons; no map counts as endless."""
    runs = [run for run in result["runs"] if run["case"] == "two-1000"]
    states = [state for run in runs for state in run.get("states", [{}])]
    return max(state.get("resolution_A") or float("inf") for state in states) if states else None


def _slowest(result: dict[str, Any]) -> float | None:
    """The longest time that frames of two states took to be told apart, in seconds, alone on the card."""
    runs = [run for run in result["runs"] if run["case"].startswith(("two-", "minority-"))]
    runs = [run for run in runs if not run.get("beside")]
    return max((run["seconds"] for run in runs), default=None)


def _blind(noise: str, result: str, flag: str = "") -> Figure:
    """Runs of M-TIP on 3IYF that come to the resolution in time, with noise or without."""
    return Figure(
        f"3IYF, 10 000 frames {noise}, blind: runs with 12.2 Å against the atoms within 3 minutes",
        at_least(100, "%"),
        result,
        lambda r: share(r["successes"]["mtip"]),
        f"python bench/mtip.py blind {flag}--device cuda --seeds 5 --keep",
        remark=lambda r: f"{r['successes']['mtip']} runs; {_spread(r['runs'])}{_company(r['runs'])}",
    )


def _spread(runs: list[dict[str, Any]]) -> str:
    """Resolutions and times of runs, from the least to the most."""
    found = sorted(run["resolution_A"] for run in runs if run.get("resolution_A"))
    seconds = sorted(run.get("reconstruct_seconds", 0) + run.get("phase_seconds", 0) for run in runs)
    if not found:
        return "none has a resolution"
    if len(runs) == 1:
        return f"{found[0]:.3g} Å"
    return f"{found[0]:.3g} to {found[-1]:.3g} Å in {seconds[0]:.0f} to {seconds[-1]:.0f} s"


def _company(runs: list[dict[str, Any]]) -> str:
    """With how many others runs have shared a card, which makes them slower."""
    most = max((run.get("beside", 0) for run in runs), default=0)
    return f", beside up to {most} other runs on the same card" if most else ""


def _matching(result: dict[str, Any]) -> float | None:
    of_numbers = {
        int(key.split()[0]): value for key, value in result.items() if key.endswith(" orientations")
    }
    return of_numbers[1_048_576]["seconds"] if 1_048_576 in of_numbers else None


FIGURES = [
    _blind("of 1 000 photons", "mtip_blind_cuda"),
    Figure(
        "3IYF, 10 000 frames of 1 000 photons, blind: resolution against the atoms, the worst of these runs",
        at_most(12.2, "Å"),
        "mtip_blind_cuda",
        lambda r: max(run.get("resolution_A") or float("inf") for run in r["runs"]),
        "python bench/mtip.py blind --device cuda --seeds 5 --keep",
        remark=lambda r: f"{len(r['runs'])} runs",
        plain="The same by M-TIP from frames of 1 000 photons",
        published="SpiniFEL: 13.7 Å (Shah et al.)",
    ),
    _blind("without noise", "mtip_blind_noise_free_cuda", "--noise-free "),
    Figure(
        "A small blind run of M-TIP, 1 000 frames of 64² pixels, to its density, 2 cores",
        at_most(180, "s"),
        "mtip_blind_cpu",
        lambda r: max(run["reconstruct_seconds"] + run["phase_seconds"] for run in r["runs"]),
        "python bench/mtip.py blind --object blobs --frames 1000 --pixels 64 --edge 30 --seeds 1 --keep",
        remark=lambda r: _spread(r["runs"]),
    ),
    Figure(
        "Matching 1 048 576 orientations with 2 500 frames of 16 384 pixels, GPU",
        at_most(1, "s"),
        "mtip_matching_cuda",
        _matching,
        "python bench/mtip.py matching --device cuda --keep",
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
    ),
    Figure(
        "Two states mixed 1:1, frames in the right one, 50 photons",
        at_least(98.5, "%"),
        "conformations_cuda",
        _right("two-50"),
        _STATES,
    ),
    Figure(
        "A minority of 5 % among 10 000 frames of 300 photons, frames in the right state",
        told("%"),
        "conformations_cuda",
        _right("minority-300"),
        _STATES,
    ),
    Figure(
        "Three states on a path between the two, 1 000 photons, frames in the right one",
        told("%"),
        "conformations_cuda",
        _right("path-1000"),
        _STATES,
    ),
    Figure(
        "Telling two states apart, slowest of all photon counts",
        at_most(60, "s"),
        "conformations_cuda",
        _slowest,
        _STATES,
    ),
    Figure(
        "Two states mixed 1:1, resolution of both maps, 1 000 photons",
        at_most(14, "Å"),
        "conformations_cuda",
        _coarsest_map,
        _STATES,
    ),
    Figure(
        "Number of states (1, 2 and 3) chosen right from 10 000 frames, GPU",
        at_least(100, "%"),
        "conformations_cuda",
        _chosen_right,
        _STATES,
    ),
    Figure(
        "Number of states (1, 2 and 3) chosen right from 600 frames to 30 Å, 2 cores",
        at_least(100, "%"),
        "conformations_cpu",
        _chosen_right,
        "python bench/conformations.py --cases auto-1 auto-2 auto-3 --no-maps --keep",
        remark=lambda r: (
            f"frames in the right state: {100 * min(run['frames_right'] for run in r['runs']):.4g} %"
        ),
    ),
]
