"""RunRecord: what the directory of a run shows about it, during the run or afterwards."""

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
    """A run as its files show it now; every property reads them anew, and nothing is changed.

    described : the content of ``run.json``.
    """

    def __init__(self, path: Path, described: dict[str, Any]) -> None:
        self.path = path
        self.described = described
        self._directory = RunDirectory(path)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running" if self.holder else "not finished"
        return f"<Run '{self.path}': {self.method}, {counted(self.iteration, 'iteration')}, {state}>"

    def show(self, title: str = "") -> Any:
        """A picture of intensity, curves per iteration, directions and fluences, as far as the run is."""
        return orienteer.show(self, title)  # plot/ is downstream, so it cannot be imported here

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
        """The whole log, in order; ``event`` is the kind of each line."""
        return read_events(self._directory.events)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The record of each step, in order."""
        return [event for event in self.events if event["event"] == STEP]

    @property
    def iteration(self) -> int:
        """Steps done."""
        return max((step["iteration"] for step in self.steps), default=0)

    @property
    def finished(self) -> bool:
        """Whether the run has finished and all results are written."""
        return self._end is not None

    @property
    def reason(self) -> str:
        """Why the run has finished, in one sentence; empty if it has not."""
        return "" if self._end is None else str(self._end["reason"])

    @property
    def remarks(self) -> list[str]:
        """The remarks of the method about the data, made before its first step."""
        begun = [event for event in self.events if event["event"] in ("started", "resumed")]
        return [str(remark) for remark in begun[-1].get("remarks", ())] if begun else []

    @property
    def holder(self) -> Holder | None:
        """The process that works on the run now; None if there is none."""
        return lock_holder(self.path)

    def volumes(self) -> tuple[Volume, ...]:
        """The intensity of each model, as last saved."""
        self._need_results()
        from orienteer.volume.opening import open_volumes

        return open_volumes(self._directory.intensity)

    def orientations(self) -> dict[str, NDArray[Any]]:
        """Columns (N, ...) with what was found about each frame, as last saved."""
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
                f"{self.path}: there are no results yet; the first step writes the first ones.",
                "Go on with the command that began it, or in Python do a step: next(run.iterate()).",
            )

    @property
    def _end(self) -> dict[str, Any] | None:
        """The log line of the end of the run; None if it has not ended, or was resumed after it."""
        turns = [event for event in self.events if event["event"] in ("started", "resumed", "finished")]
        return turns[-1] if turns and turns[-1]["event"] == "finished" else None
