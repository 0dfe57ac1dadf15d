"""RunRecord: what a directory tells of its run, while it is worked on or afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

import orienteer
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.events import STEP, read_events
from orienteer.run.lock import Holder, lock_holder

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume


class RunRecord:
    """A run as its files are now: nothing of it is kept here, and nothing is changed.

    described : what ``run.json`` says.
    """

    def __init__(self, path: Path, described: dict[str, Any]) -> None:
        self.path = path
        self.described = described
        self._directory = RunDirectory(path)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running" if self.holder else "not finished"
        return f"<Run '{self.path}': {self.method}, {counted(self.iteration, 'iteration')}, {state}>"

    def show(self, title: str = "") -> Any:
        """The picture of intensity, curves per iteration, directions and fluences, as far as it is."""
        return orienteer.show(self, title)  # pictures lie downstream

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.described["method"])

    @property
    def seed(self) -> int:
        """The seed of every random draw."""
        return int(self.described["seed"])

    @property
    def events(self) -> list[dict[str, Any]]:
        """The whole log, in order; ``event`` says what each line is."""
        return read_events(self._directory.events)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What each step said, in order."""
        return [event for event in self.events if event["event"] == STEP]

    @property
    def iteration(self) -> int:
        """Steps done."""
        return max((step["iteration"] for step in self.steps), default=0)

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end and all results are there."""
        return self._end is not None

    @property
    def reason(self) -> str:
        """Why the run has finished, in one sentence; empty when it has not."""
        return "" if self._end is None else str(self._end["reason"])

    @property
    def remarks(self) -> list[str]:
        """What the method had to say about the data before its first step."""
        begun = [event for event in self.events if event["event"] in ("started", "resumed")]
        return [str(remark) for remark in begun[-1].get("remarks", ())] if begun else []

    @property
    def holder(self) -> Holder | None:
        """The process that works on the run now."""
        return lock_holder(self.path)

    def volumes(self) -> tuple[Volume, ...]:
        """The intensity of each model, as last saved."""
        self._need_results()
        from orienteer.volume.opening import open_volumes

        return open_volumes(self._directory.intensity)

    def orientations(self) -> dict[str, NDArray[Any]]:
        """Columns (N, ...) with what was found out about each frame, as last saved."""
        self._need_results()
        from orienteer.run.orientations_file import read_orientations

        return read_orientations(self._directory.orientations)

    @property
    def has_results(self) -> bool:
        """Whether an intensity and orientations were saved."""
        return self._directory.orientations.exists()  # written last, after the intensity

    def _need_results(self) -> None:
        if not self.has_results:
            raise OrienteerError(
                f"{self.path}: there are no results yet; the first come with the first step.",
                "Go on with the command that began it, or in Python do a step: next(run.iterate()).",
            )

    @property
    def _end(self) -> dict[str, Any] | None:
        """The line with which the run has ended; None while it has not, or since it goes on."""
        turns = [event for event in self.events if event["event"] in ("started", "resumed", "finished")]
        return turns[-1] if turns and turns[-1]["event"] == "finished" else None
