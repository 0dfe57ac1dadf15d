"""The density of a run, and of each half, phased by itself: its own starts, its own support, its own size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orienteer.compute.progress import tell
from orienteer.phase.files import DESCRIPTION
from orienteer.phase.phasing import phase
from orienteer.phase.result import Phasing, read_description
from orienteer.phase.settings import PhaseSettings
from orienteer.run.intensity import Intensity, open_intensity
from orienteer.validate.half_runs import half_seed

if TYPE_CHECKING:
    from pathlib import Path

    from orienteer.compute.arrays import DeviceName
    from orienteer.run.run import Run


def half_phase_seed(seed: int, half: int) -> int:
    """The seed of the phasing of a half, 1 or 2, drawn from that of the run."""
    return half_seed(half_seed(seed, half), half)


def phase_settings_for(run: Run, given: PhaseSettings | None = None) -> PhaseSettings:
    """The settings of the phasing; a symmetry that the run was given or has found holds for the density."""
    settings = given or PhaseSettings()
    told = run.density_group.name
    if "symmetry" in settings.model_fields_set or told == settings.symmetry:
        return settings
    return settings.model_copy(update={"symmetry": told})


def phase_run(run: Run, settings: PhaseSettings | None = None, device: DeviceName = "auto") -> Phasing:
    """The density of all frames of a run, written into its folder; one that is there already is taken.

    It is whoever phased it before that knows why, so that it is taken however it was made.
    """
    if (run.path / DESCRIPTION).exists():
        return Phasing.open(run.path)
    given = open_intensity(run.path)
    found = _phase(given, phase_settings_for(run, settings), given.seed, device)
    found.save(run.path)
    return found


def phase_half(
    run: Run,
    settings: PhaseSettings,
    seed: int,
    device: DeviceName = "auto",
    diameter_A: float = 0.0,
    model: int = 1,
) -> Phasing:
    """The density of a half, written into its folder; one that was found before in the same way is taken.

    model : of several, counted from 1; the densities of others than the first have a folder below.
    diameter_A : what the run itself has found out about the size of the particle, which holds where none is
        given: it has seen single frames, and knows it better than the intensity does.
    """
    if diameter_A and not settings.diameter_A:
        settings = settings.model_copy(update={"diameter_A": diameter_A})
    given = open_intensity(run.path, model)
    folder = run.path if model == 1 else run.path / f"phased_model_{model}"
    found = _kept(folder, given, settings, seed)
    if found is None:
        found = _phase(given, settings, seed, device)
        found.save(folder)
    return found


def _phase(given: Intensity, settings: PhaseSettings, seed: int, device: DeviceName) -> Phasing:
    found = phase(given.volume, settings, seed=seed, device=device, progress=tell)
    remarks = (*given.remarks, *found.further_remarks)
    return replace(found, origin=given.origin, further_remarks=remarks)


def _kept(folder: Path, given: Intensity, settings: PhaseSettings, seed: int) -> Phasing | None:
    if not (folder / DESCRIPTION).exists():
        return None
    told = read_description(folder)
    is_same = (
        told["intensity"].get("checksum") == given.origin["checksum"]
        and told["seed"] == seed
        and told["settings"] == settings.model_dump(mode="json")
    )
    return Phasing.open(folder) if is_same else None
