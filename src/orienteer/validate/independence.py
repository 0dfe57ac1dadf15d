"""Check that two halves are independent: only then does their agreement mean anything.

Noise that was oriented by the same model looks like that model in both halves, however well the frames are
shuffled.  So the records of the two runs are compared, and halves are refused if they share frames, a start,
a support, or a selection of frames that was made from both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError

if TYPE_CHECKING:
    from orienteer.run.run import Run

_HINT = "Let every half find everything by itself: orienteer validate RUN makes two such runs."
# Both halves may share files that describe the experiment and not the particle, and known orientations, which
# every statement about the halves mentions first.
_TOLD = {"background_file", "known_orientations_file"}
_SUPPORT, _SELECTION = ("support", "mask"), ("selection", "selected", "hits")


@dataclass(frozen=True, eq=False)
class HalfFacts:
    """What a run has recorded about its origin.

    name : of the run, for messages.
    event_ids : (n,) uint64, every frame that it has seen.
    seed : of its random start.
    phase_seed : of the random starts of its phasing; None if it was not phased.
    start, support, selection : hashes of the files from which it took them, by the name of the setting; empty
        if the run found them by itself from its own frames.
    """

    name: str
    event_ids: NDArray[np.uint64]
    seed: int
    start: tuple[tuple[str, str], ...] = ()
    support: tuple[tuple[str, str], ...] = ()
    selection: tuple[tuple[str, str], ...] = ()
    phase_seed: int | None = None


def facts_of(run: Run, event_ids: NDArray[np.uint64] | None = None) -> HalfFacts:
    """The facts that a run has recorded.

    event_ids : of its frames; None: those in its results.
    """
    files = {name: content for name, content in run.described.get("files", {}).items() if name not in _TOLD}

    def named(*words: str) -> tuple[tuple[str, str], ...]:
        return tuple((name, files.pop(name)) for name in sorted(files) if any(w in name for w in words))

    support, selection = named(*_SUPPORT), named(*_SELECTION)
    ids = run.orientations()["event_id"] if event_ids is None else event_ids
    return HalfFacts(str(run.path), ids, run.seed, tuple(sorted(files.items())), support, selection)


def check_independence(first: HalfFacts | Run, second: HalfFacts | Run) -> None:
    """Refuse two halves that share anything that could cause their agreement."""
    a, b = (one if isinstance(one, HalfFacts) else facts_of(one) for one in (first, second))
    shared = np.intersect1d(a.event_ids, b.event_ids)
    if len(shared):
        what = counted(len(shared), "frame")
        raise OrienteerError(
            f"{a.name} and {b.name} share {what} (such as event {shared[0]}).",
            "Divide the frames by a hash of their ids: orienteer.validate.half_sets.split.",
        )
    if a.seed == b.seed:
        raise OrienteerError(
            f"{a.name} and {b.name} begin with the same random start (seed {a.seed}).",
            _HINT,
        )
    if a.phase_seed is not None and a.phase_seed == b.phase_seed:
        raise OrienteerError(
            f"{a.name} and {b.name} were phased from the same random starts (seed {a.phase_seed}).", _HINT
        )
    for what, ones, others in (
        ("a start model", a.start, b.start),
        ("a support", a.support, b.support),
        ("a selection of frames", a.selection, b.selection),
    ):
        same = {content for _, content in ones} & {content for _, content in others}
        if same:
            name = next(setting for setting, content in ones if content in same)
            raise OrienteerError(f"{a.name} and {b.name} share {what} ({name}).", _HINT)
