"""The two halves of a run: their data, their runs, the findings of each, and how their intensities agree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from orienteer.compute.arrays import DeviceName, choose_device, to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.emc import Emc
from orienteer.run.measured_intensity import measured_intensity
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.half_runs import half_runs
from orienteer.validate.half_sets import Parts, split
from orienteer.validate.intensities import IntensityAgreement, compare_intensities
from orienteer.validate.kept_maps import HalfMap, keep_map, kept_map
from orienteer.validate.kept_models import keep_model, kept_model
from orienteer.validate.relative_turn import turn_between
from orienteer.validate.sentinel_poses import HalfModel, ask_half, finished_emc, half_model

if TYPE_CHECKING:
    from orienteer.run.method import Method
    from orienteer.run.run import Run
    from orienteer.source.base import Source
    from orienteer.volume.volume import Volume


@dataclass(frozen=True, eq=False)
class Halves:
    """The data of a run in three parts, and the runs of the two halves.

    models : findings of the halves that have finished in this process, by the name of their folder.
    lead : whether the run of all frames waits for the maps of the halves; if so, these are stored.
    agreements : of their intensities, by the model of each half; only those compared so far.
    """

    parts: Parts
    runs: tuple[Run, Run]
    models: dict[str, HalfModel] = field(default_factory=dict)
    lead: bool = False
    agreements: dict[tuple[int, ...], IntensityAgreement] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether both runs have finished."""
        return all(run.finished for run in self.runs)

    def ask_when_finished(self) -> None:
        """Let each half orient the sentinels when it finishes: later its frames must be read again."""

        def ask(run: Run, method: Method) -> None:
            if (said := said_at_end(run, method, self.parts.sentinels, self.lead)) is not None:
                self.models[run.path.name] = said

        for run in self.runs:
            run.when_finished = partial(ask, run)

    def asked(self, half: int, device: DeviceName) -> HalfModel:
        """The findings of a half, 0 or 1, with the poses that it gives to the sentinels."""
        run = self.runs[half]
        known = self.models.get(run.path.name) or kept_model(run, self.parts.sentinels)
        return known or ask_half(run, self.parts[half], self.parts.sentinels, device)

    def map_of(self, half: int, device: DeviceName) -> HalfMap:
        """The map of a finished half, 0 or 1, from its file or else from its checkpoint.

        A kill just after the end of a half leaves no file.  If the map cannot be made again from the
        checkpoint, an OrienteerError says why.
        """
        run, sentinels = self.runs[half], self.parts.sentinels
        if (kept := kept_map(run)) is not None:
            return kept
        emc = finished_emc(run, self.parts[half], device)
        if run.path.name not in self.models and kept_model(run, sentinels) is None:
            self.models[run.path.name] = half_model(emc, sentinels)  # now, because its frames are in memory
            keep_model(run, sentinels, self.models[run.path.name])
        return HalfMap.of(emc)

    def agreement(
        self, own: tuple[int, ...], models: list[HalfModel], device: DeviceName
    ) -> IntensityAgreement:
        """How far the intensities of the halves agree.  own : the model of each half, counted from 0."""
        if own not in self.agreements:
            first, second = (
                on_device(measured_intensity(run, model), device)
                for run, model in zip(self.runs, own, strict=True)
            )
            edge, diameter_A = reach_of(models)
            turn = None
            if len(self.runs[0].volumes()) == 1:  # otherwise the poses belong to several models
                within_deg = float(np.degrees(1 / (edge * diameter_A)))
                turn = turn_between(models[0].poses, models[1].poses, within_deg)
            order = common_group(*self.runs).order
            self.agreements[own] = compare_intensities(first, second, diameter_A, order, edge, turn)
        return self.agreements[own]


def begin_halves(
    run: Run,
    settings: ValidationSettings | None = None,
    device: DeviceName | None = None,
    restart: bool = False,
    beside: bool = False,
    lead: bool = False,
) -> Halves:
    """Begin the halves of a finished run, or open those that were begun; see :func:`validate`.

    restart : begin anew; everything that the halves have done is lost.
    beside : the run itself need not have finished, because the halves are worked on at the same time.
    lead : the run itself waits for the maps of the halves.
    """
    if not beside:
        refuse_unfinished(run)
    parts = split(run.source, (settings or ValidationSettings()).sentinels)
    halves = Halves(parts, half_runs(run, parts, device=device, restart=restart), lead=lead)
    halves.ask_when_finished()
    return halves


def said_at_end(run: Run, method: Method, sentinels: Source, lead: bool) -> HalfModel | None:
    """The findings of a finished half, with the poses of the sentinels; stored, with its map if it leads."""
    if not isinstance(method, Emc):
        return None
    said = half_model(method, sentinels)
    keep_model(run, sentinels, said)
    if lead:
        keep_map(run, method)  # last: a process that waits for the map needs the model as well
    return said


def common_group(*runs: Run) -> PointGroup:
    """The symmetry of the intensities of all runs; C1 if they differ, since each may have found its own."""
    groups = {run.group.name for run in runs}
    return PointGroup(groups.pop()) if len(groups) == 1 else PointGroup()


def refuse_unfinished(run: Run) -> None:
    """Refuse a run without a result."""
    if not run.finished:
        raise OrienteerError(
            f"{run.path}: the run has not come to its end, so there is no result to validate.",
            "Finish it first, with the command that began it.",
        )


def reach_of(models: list[HalfModel]) -> tuple[float, float]:
    """The edge of the data in 1/A and the diameter in A, of each the smaller value of the halves."""
    return min(model.edge_inv_A for model in models), min(model.diameter_A for model in models)


def on_device(volume: Volume, device: DeviceName) -> Volume:
    """The volume in the memory of a device."""
    values = to_numpy(volume.values) if choose_device(device) == "cpu" else to_device(volume.values, device)
    return replace(volume, values=values)
