"""The settings of a run, which of them differ from the defaults, and the commands that give them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orienteer.errors import OrienteerError
from orienteer.report.evidence import Evidence
from orienteer.report.phasing_facts import PhasingFacts
from orienteer.report.plain_values import as_number, as_words
from orienteer.run.method import find_method

UNCHANGED = "as by default"


@dataclass(frozen=True)
class UsedSetting:
    """A setting with its value; ``default`` is None where nobody knows it."""

    section: str
    name: str
    value: Any
    default: Any

    @property
    def differs(self) -> bool:
        """Whether it is not the default."""
        return bool(self.value != self.default)


def settings_of(evidence: Evidence) -> list[UsedSetting]:
    """Every setting of a run with the default of this version."""
    used = []
    for section, values in (evidence.settings.value or {}).items():
        if not isinstance(values, Mapping):
            continue
        defaults = _defaults(section)
        used += [UsedSetting(section, name, value, defaults.get(name)) for name, value in values.items()]
    return used


def _defaults(section: str) -> dict[str, Any]:
    if section == "phase":
        from orienteer.phase.settings import PhaseSettings

        return PhaseSettings().model_dump(mode="json")
    try:
        return find_method(section).settings().model_dump(mode="json")
    except OrienteerError:
        return {}


def commands(evidence: Evidence, phasing: PhasingFacts | None) -> list[str]:
    """The command lines that make the run again, as far as the folder knows."""
    run = shlex.quote(str(evidence.path))
    return [
        _reconstruct(evidence, run),
        *([_phase(phasing, run)] if phasing is not None else []),
        *([f"orienteer validate {run}"] if evidence.validation.value is not None else []),
        f"orienteer report {run}",
    ]


def _reconstruct(evidence: Evidence, run: str) -> str:
    given, described, frames = evidence.input, evidence.described, evidence.frames.value
    words = ["orienteer reconstruct", shlex.quote(as_words(given.get("path")) or "DATA"), "--out", run]
    if frames is not None and frames.needs_geometry:
        words += ["--geometry", shlex.quote(str(evidence.path / "detector.h5"))]
    wavelength_A = as_number(given.get("wavelength_A"))
    if frames is not None and frames.needs_wavelength and wavelength_A is not None:
        words += ["--wavelength-A", repr(wavelength_A)]
    words += ["--seed", str(described.get("seed", 0)), "--device", str(described.get("device_used", "auto"))]
    return " ".join([*words, *_overrides(settings_of(evidence))])


def _phase(phasing: PhasingFacts, run: str) -> str:
    defaults = _defaults("phase")
    used = [UsedSetting("phase", name, value, defaults.get(name)) for name, value in phasing.settings.items()]
    seed = [] if phasing.seed is None else ["--seed", str(phasing.seed)]
    return " ".join(["orienteer phase", run, *seed, *_overrides(used)])


def _overrides(used: list[UsedSetting]) -> list[str]:
    changed = [setting for setting in used if setting.differs and setting.value is not None]
    return [f"--set {shlex.quote(f'{s.section}.{s.name}={json.dumps(s.value)}')}" for s in changed]
