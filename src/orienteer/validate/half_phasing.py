"""Phase a run, and each half separately: with its own starts, support and size of the particle.

A symmetry that was given holds for the run and for both halves.  One that was found holds only for the run
that has found it: the frames of the run are those of both halves.
"""

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
    """The settings of the phasing; unless a symmetry is given, that of the density of the run is used."""
    settings = given or PhaseSettings()
    told = run.density_group.name
    if "symmetry" in settings.model_fields_set or told == settings.symmetry:
        return settings
    return settings.model_copy(update={"symmetry": told})


def phase_run(run: Run, settings: PhaseSettings | None = None, device: DeviceName = "auto") -> Phasing:
    """Phase a run of all frames and write the density into its folder, or open the density that is there.

    An existing density is used whatever its settings were: the user may have phased the run by hand.
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
    """Phase a half and write the density into its folder, or open one that was made with the same settings.

    model : counted from 1; densities of models after the first have a folder of their own below.
    settings : as they were given; see :func:`phase_settings_for`.
    diameter_A : of the particle, as found by the run from single frames, which show it better than the
        intensity does; used if the settings give none.
    """
    settings = phase_settings_for(run, settings)
    if diameter_A and not settings.diameter_A:
        settings = settings.model_copy(update={"diameter_A": diameter_A})
    given = open_intensity(run.path, model)
    folder = phased_folder(run.path, model)
    found = _kept(folder, given, settings, seed)
    if found is None:
        found = _phase(given, settings, seed, device)
        found.save(folder)
    return found


def phased_folder(run: Path, model: int) -> Path:
    """The folder of the density of a model of a run, counted from 1."""
    return run if model == 1 else run / f"phased_model_{model}"


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
