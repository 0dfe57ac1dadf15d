"""The density of each half, phased by itself: its own starts, its own support, its own size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orienteer.compute.progress import tell
from orienteer.phase.phasing import phase
from orienteer.phase.result import DESCRIPTION, Phasing, read_description
from orienteer.phase.settings import PhaseSettings
from orienteer.run.measured_intensity import measured_intensity
from orienteer.validate.half_runs import half_seed

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.run.run import Run


def half_phase_seed(seed: int, half: int) -> int:
    """The seed of the phasing of a half, 1 or 2, drawn from that of the run."""
    return half_seed(half_seed(seed, half), half)


def phase_settings_for(run: Run, given: PhaseSettings | None = None) -> PhaseSettings:
    """The settings of the phasing; a symmetry that the run was given holds for the density, too."""
    settings = given or PhaseSettings()
    if "symmetry" in settings.model_fields_set or run.settings.symmetry == settings.symmetry:
        return settings
    return settings.model_copy(update={"symmetry": run.settings.symmetry})


def phase_half(
    run: Run, settings: PhaseSettings, seed: int, device: DeviceName = "auto", diameter_A: float = 0.0
) -> Phasing:
    """The density of a half, written into its folder; one that was found before in the same way is taken.

    diameter_A : what the run itself has found out about the size of the particle, which holds where none is
        given: it has seen single frames, and knows it better than the intensity does.
    """
    if diameter_A and not settings.diameter_A:
        settings = settings.model_copy(update={"diameter_A": diameter_A})
    found = _kept(run, settings, seed)
    if found is None:
        found = _phase(run, settings, seed, device)
        found.save(run.path)
    return found


def _phase(run: Run, settings: PhaseSettings, seed: int, device: DeviceName) -> Phasing:
    found = phase(measured_intensity(run), settings, seed=seed, device=device, progress=tell)
    return replace(found, origin=_origin(run))


def _kept(run: Run, settings: PhaseSettings, seed: int) -> Phasing | None:
    if not (run.path / DESCRIPTION).exists():
        return None
    told = read_description(run.path)
    wanted = {"intensity": _origin(run), "seed": seed, "settings": settings.model_dump(mode="json")}
    return Phasing.open(run.path) if all(told[name] == value for name, value in wanted.items()) else None


def _origin(run: Run) -> dict[str, str | int]:
    return {"path": run.path.name, "run_id": run.described["run_id"], "iteration": run.iteration}
