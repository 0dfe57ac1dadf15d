"""Where a run stands, for scripts and for people."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orienteer.cli.live_display import angle_in_words, temperature_in_words
from orienteer.compute.words import time_in_words
from orienteer.run.coarse_agreement import coarse_agreement_in_words
from orienteer.run.files import INTENSITY_H5, ORIENTATIONS
from orienteer.run.frame_use import frame_use
from orienteer.run.known_orientations import known_orientations_in_words
from orienteer.run.pose_agreement import pose_agreement_deg
from orienteer.run.states import missing_models_in_words, states_in_words

if TYPE_CHECKING:
    from orienteer.run.run import Run

RESULTS = ("intensity*.mrc", INTENSITY_H5, ORIENTATIONS)
# Fields of the last step that are left out: those of the log itself, curves, and what the run reports.
NOT_TOLD = ("event", "time", "radial", "seconds_left", "finished", "reason")


def run_report(run: "Run") -> dict[str, Any]:
    """Where a run stands: its last step, and its result files."""
    steps = run.steps
    last = {name: value for name, value in steps[-1].items() if name not in NOT_TOLD} if steps else {}
    use = frame_use(run.orientations()) if run.has_results else None
    missing = missing_models_in_words(dict(run.settings), run.events)
    coarse = (
        coarse_agreement_in_words(last, dict(run.settings), run.volumes())
        if run.finished and run.has_results
        else ""
    )
    files = [path for pattern in RESULTS for path in sorted(run.path.glob(pattern))]
    return {
        "known_orientations": known_orientations_in_words(dict(run.settings)),
        "path": str(run.path),
        "data": run.described["input"]["path"],
        "frames": run.described["input"]["frames"],
        "frames_left_out": None if use is None else use.left_out,
        "seed": run.seed,
        **last,
        "pose_agreement_deg": _pose_agreement_deg(last),
        "missing_models": missing,
        "coarse_agreement": coarse,
        "remarks": [*run.remarks, *(words for words in (missing, coarse) if words)],
        "finished": run.finished,
        "reason": run.reason,
        "seconds": sum(step.get("seconds") or 0.0 for step in steps),
        "files": [str(path) for path in files],
    }


def _pose_agreement_deg(step: Mapping[str, Any]) -> float | None:
    if not step:
        return None
    return pose_agreement_deg(
        step.get("sentinel_agreement_deg"), step["iteration"], step.get("perplexity"), step["n_rotations"]
    )


def in_rows(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The report of a run as rows for people; unknown values are left out."""
    words: dict[str, Callable[[Any], str]] = {
        "known_orientations": str,
        "reason": str,
        "missing_models": str,
        "iteration": str,
        "frames": "{:,}".format,
        "frames_left_out": "{:,} that show something other than the particle, or nothing".format,
        "states": states_in_words,
        "symmetry": str,
        "log_likelihood": "{:,.2f} per frame".format,
        "inverse_temperature": temperature_in_words,
        "agrees_to_A": "{:.3g} A (0.5)".format,
        "resolution_A": "{:.3g} A".format,
        "pose_agreement_deg": angle_in_words,
        "seconds": time_in_words,
        "files": ", ".join,
    }
    names = {
        "known_orientations": "beware",
        "missing_models": "models",
        "iteration": "iterations",
        "frames_left_out": "left out",
        "log_likelihood": "log-likelihood",
        "inverse_temperature": "temperature",
        "agrees_to_A": "halves agree to",
        "resolution_A": "data to",
        "pose_agreement_deg": "halves agree on poses to",
        "seconds": "time",
    }
    return [
        (names.get(name, name), say(report[name]))
        for name, say in words.items()
        if report.get(name) not in (None, "", []) and (name, report[name]) != ("frames_left_out", 0)
    ]
