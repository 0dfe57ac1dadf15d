"""The two halves of a run: their data, their runs, what each says, and how their intensities agree."""

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

    models : what the halves say that have come to their end in this process, by the name of their folder.
    lead : whether the run of all frames waits for the maps of the halves, which are then kept for it.
    agreements : of their intensities, by the model of each, as far as they were compared.
    """

    parts: Parts
    runs: tuple[Run, Run]
    models: dict[str, HalfModel] = field(default_factory=dict)
    lead: bool = False
    agreements: dict[tuple[int, ...], IntensityAgreement] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether both runs have come to their end."""
        return all(run.finished for run in self.runs)

    def ask_when_finished(self) -> None:
        """Let each half orient the sentinels at its end: opening it again would read all its frames again."""

        def ask(run: Run, method: Method) -> None:
            if (said := said_at_end(run, method, self.parts.sentinels, self.lead)) is not None:
                self.models[run.path.name] = said

        for run in self.runs:
            run.when_finished = partial(ask, run)

    def asked(self, half: int, device: DeviceName) -> HalfModel:
        """What a half, 0 or 1, says."""
        run = self.runs[half]
        known = self.models.get(run.path.name) or kept_model(run, self.parts.sentinels)
        return known or ask_half(run, self.parts[half], self.parts.sentinels, device)

    def map_of(self, half: int, device: DeviceName) -> HalfMap:
        """The map of a half, 0 or 1, that has come to its end, as it was kept or as its checkpoint has it.

        A kill just after the end of a half leaves no map; an OrienteerError says why it cannot be made again.
        """
        run, sentinels = self.runs[half], self.parts.sentinels
        if (kept := kept_map(run)) is not None:
            return kept
        emc = finished_emc(run, self.parts[half], device)
        if run.path.name not in self.models and kept_model(run, sentinels) is None:
            self.models[run.path.name] = half_model(emc, sentinels)  # while its frames are at hand
            keep_model(run, sentinels, self.models[run.path.name])
        return HalfMap.of(emc)

    def agreement(
        self, own: tuple[int, ...], models: list[HalfModel], device: DeviceName
    ) -> IntensityAgreement:
        """How far the intensities of the halves agree, each that of its model ``own``, from 0."""
        if own not in self.agreements:
            first, second = (
                on_device(measured_intensity(run, model), device)
                for run, model in zip(self.runs, own, strict=True)
            )
            edge, diameter_A = reach_of(models)
            turn = None
            if len(self.runs[0].volumes()) == 1:  # else poses are of several models
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
    """The halves of a finished run, begun or found where they were begun; see :func:`validate`.

    restart : begin anew; everything that the halves have done is lost.
    beside : the run itself need not have come to its end, because the halves are worked on beside it.
    lead : the run itself waits for what the halves find.
    """
    if not beside:
        refuse_unfinished(run)
    parts = split(run.source, (settings or ValidationSettings()).sentinels)
    halves = Halves(parts, half_runs(run, parts, device=device, restart=restart), lead=lead)
    halves.ask_when_finished()
    return halves


def said_at_end(run: Run, method: Method, sentinels: Source, lead: bool) -> HalfModel | None:
    """What a half that has come to its end says about the sentinels; it is kept, and its map if it leads."""
    if not isinstance(method, Emc):
        return None
    said = half_model(method, sentinels)
    keep_model(run, sentinels, said)
    if lead:
        keep_map(run, method)  # last: whoever waits for it wants the other, too
    return said


def common_group(*runs: Run) -> PointGroup:
    """The symmetry that the intensities of all runs have; each may have found its own."""
    groups = {run.group.name for run in runs}
    return PointGroup(groups.pop()) if len(groups) == 1 else PointGroup()


def refuse_unfinished(run: Run) -> None:
    """Refuse a run without a result."""
    if not run.finished:
        raise OrienteerError(
            f"{run.path}: the run has not come to its end, so that there is no result to validate.",
            "Go on with the command that began it.",
        )


def reach_of(models: list[HalfModel]) -> tuple[float, float]:
    """The edge of the data in 1/A and the diameter in A that hold for both halves."""
    return min(model.edge_inv_A for model in models), min(model.diameter_A for model in models)


def on_device(volume: Volume, device: DeviceName) -> Volume:
    """The volume in the memory of a device."""
    values = to_numpy(volume.values) if choose_device(device) == "cpu" else to_device(volume.values, device)
    return replace(volume, values=values)
