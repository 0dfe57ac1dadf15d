"""The settings that each step of a run used, and the commands that repeat it."""

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
from orienteer.run.files import DETECTOR
from orienteer.run.method import find_method
from orienteer.run.settings import Settings

RECONSTRUCT, PHASE, VALIDATE = "reconstruct", "phase", "validate"


@dataclass(frozen=True)
class UsedSetting:
    """A setting with its value.

    step : the command that used it.
    default : of this version; None if it does not know the setting.
    """

    step: str
    section: str
    name: str
    value: Any
    default: Any

    @property
    def differs(self) -> bool:
        """Whether it is not the default."""
        return bool(self.value != self.default)


def settings_of(evidence: Evidence) -> list[UsedSetting]:
    """All settings of all steps that were done."""
    phasing, validation = evidence.phasing.value or {}, evidence.validation.value or {}
    return [
        *_used(RECONSTRUCT, evidence.settings.value),
        *_used(PHASE, {"phase": phasing.get("settings")}),
        *_used(VALIDATE, validation.get("settings")),
    ]


def _used(step: str, sections: Any) -> list[UsedSetting]:
    used = []
    for section, values in sections.items() if isinstance(sections, Mapping) else ():
        if isinstance(values, Mapping):
            defaults = _defaults(section)
            used += [
                UsedSetting(step, section, name, value, defaults.get(name)) for name, value in values.items()
            ]
    return used


def _defaults(section: str) -> dict[str, Any]:
    known: dict[str, Any] = Settings().model_dump(mode="json")
    if section in known:
        return dict(known[section])
    try:
        return find_method(section).settings().model_dump(mode="json")
    except OrienteerError:
        return {}


def commands(evidence: Evidence, phasing: PhasingFacts | None) -> list[str]:
    """The command lines that repeat the run, as far as its folder says."""
    run, used = shlex.quote(str(evidence.path)), settings_of(evidence)
    lines = [" ".join([*_reconstruct(evidence, run), *_overrides(used, RECONSTRUCT)])]
    if phasing is not None:
        seed = [] if phasing.seed is None else ["--seed", str(phasing.seed)]
        lines.append(" ".join(["orienteer phase", run, *seed, *_overrides(used, PHASE)]))
    if evidence.validation.value is not None:
        lines.append(" ".join(["orienteer validate", run, *_overrides(used, VALIDATE)]))
    return [*lines, f"orienteer report {run}"]


def _reconstruct(evidence: Evidence, run: str) -> list[str]:
    given, described, frames = evidence.input, evidence.described, evidence.frames.value
    words = ["orienteer reconstruct", shlex.quote(as_words(given.get("path")) or "DATA"), "--out", run]
    if frames is not None and frames.needs_geometry:
        words += ["--geometry", shlex.quote(str(evidence.path / DETECTOR))]
    wavelength_A = as_number(given.get("wavelength_A"))
    if frames is not None and frames.needs_wavelength and wavelength_A is not None:
        words += ["--wavelength-A", repr(wavelength_A)]
    device = str(described.get("device_used", "auto"))
    return [*words, "--seed", str(described.get("seed", 0)), "--device", shlex.quote(device)]


def _overrides(used: list[UsedSetting], step: str) -> list[str]:
    changed = [one for one in used if one.step == step and one.differs and one.value is not None]
    return [f"--set {shlex.quote(f'{one.section}.{one.name}={json.dumps(one.value)}')}" for one in changed]
