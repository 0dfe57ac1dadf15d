"""A prediction in words and numbers, for people and for scripts."""

from dataclasses import asdict
from typing import Any

from orienteer.compute.words import in_bytes
from orienteer.scaling.prediction import Prediction
from orienteer.scaling.reference_sharing import choose_slices

# Stages that are shown together, in the order in which they are done.
_TOLD = {
    "slices": ("expand", "insert"),
    "scores and merges": ("score", "posterior", "fluence", "merge"),
    "new models": ("compress", "solve", "phase", "other"),
    "judging frames": ("judge",),
    "collectives": ("collectives",),
}


def describe_prediction(found: Prediction, alone: Prediction) -> list[tuple[str, str]]:
    """Names and values of a prediction in words.  alone : the same problem on one rank."""
    problem, machine = found.problem, found.machine
    n_nodes = -(-found.n_ranks // machine.ranks_per_node)
    assumed = " (assumed)" if machine.network.is_assumed else ""
    parts = [
        f"{name} {sum(found.stages.get(stage, 0.0) for stage in stages) / found.seconds:.0%}"
        for name, stages in _TOLD.items()
    ]
    largest = sorted(found.traffic.by_part.items(), key=lambda part: -part[1])[:3]
    sent = ", ".join(f"{name} {in_bytes(value)}" for name, value in largest if value > 0)
    faster = alone.seconds / found.seconds
    references = []
    if problem.method == "mtip":
        references.append(("references", choose_slices(found).why))
    return [
        ("method", "M-TIP" if problem.method == "mtip" else "EMC"),
        ("ranks", f"{found.n_ranks:,} on {n_nodes:,} node{'s' if n_nodes > 1 else ''}, {machine.name}"),
        ("network", f"{machine.network.name}{assumed}"),
        ("frames", f"{problem.n_frames:,} of {problem.n_pixels:,} pixels"),
        ("orientations", f"{problem.n_poses:,} at the finest grid"),
        ("mesh", f"{found.mesh}: {found.why}"),
        ("an iteration", f"about {found.seconds:.2g} s at the finest grid: {', '.join(parts)}"),
        (
            "one rank alone",
            f"about {alone.seconds:.2g} s, {faster:.3g} times as long: an efficiency of "
            f"{faster / found.n_ranks:.0%}"
            + ("" if faster > 1 else ". One rank alone is not slower; take fewer nodes"),
        ),
        (
            "memory of a rank",
            f"{found.memory_GiB:.2f} of {machine.memory_GiB:.0f} GiB: "
            f"frames {found.memory.frames / 2**30:.2f}, scores {found.memory.scores / 2**30:.2f}"
            + ("" if found.frames_on_device else "; frames come from the host, batch by batch"),
        ),
        ("a rank sends", f"{in_bytes(found.traffic.n_bytes)} an iteration" + (f": {sent}" if sent else "")),
        *references,
        ("rates", machine.rates.source),
        ("taken for granted", f"{machine.network.source}; evenly spread work"),
    ]


def prediction_json(found: Prediction, alone: Prediction) -> dict[str, Any]:
    """All numbers of a prediction by name."""
    references = {}
    if found.problem.method == "mtip":
        choice = choose_slices(found)
        references = {"references": choice.option.kind, "references_why": choice.why}
    return {
        **references,
        "problem": asdict(found.problem),
        "machine": found.machine.name,
        "ranks": found.n_ranks,
        "mesh": found.mesh,
        "why": found.why,
        "seconds_per_iteration": found.seconds,
        "stages": found.stages,
        "seconds_on_one_rank": alone.seconds,
        "memory_GiB": found.memory_GiB,
        "fits": found.fits,
        "frames_on_device": found.frames_on_device,
        "batch_frames": found.batch_frames,
        "sent_bytes": found.traffic.n_bytes,
        "sent_bytes_by_part": found.traffic.by_part,
        "network": asdict(found.machine.network),
        "rates": found.machine.rates.source,
    }
