"""The sections on origin: settings, seeds, versions, machine, files and commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from orienteer.compute.words import counted
from orienteer.phase.files import DENSITY_H5, DENSITY_MRC, DESCRIPTION, SUPPORT
from orienteer.report.evidence import HALVES, MASK, Evidence
from orienteer.report.figure import facts, missing
from orienteer.report.markup import Content, Markup, element, joined
from orienteer.report.phasing_facts import PhasingFacts
from orienteer.report.settings_used import UsedSetting, commands, settings_of
from orienteer.report.validation_facts import ValidationFacts
from orienteer.report.words import NOT_KNOWN, listed, moment, number
from orienteer.run import files
from orienteer.validate.voxel_errors import ERRORS, MERGED

_FILES = {
    DENSITY_MRC: "density",
    DENSITY_H5: "density, with its unit",
    SUPPORT: "support of the density",
    DESCRIPTION: "what phasing found",
    f"{files.LOOP_DENSITY}.mrc": "density that was phased in the loop",
    files.INTENSITY_MRC: "intensity",
    files.INTENSITY_H5: "intensity, all models; NaN where nothing was measured",
    files.ORIENTATIONS: "orientation and fluence of every frame",
    HALVES[0]: "density of half set 1, aligned",
    HALVES[1]: "density of half set 2, aligned",
    MASK: "mask of the comparison",
    f"{files.VALIDATION}/{MERGED}": "all frames merged once, unfiltered",
    f"{files.VALIDATION}/{ERRORS}": "standard deviation of that merge, voxel by voxel",
    f"{files.VALIDATION}/{files.VALIDATION_DESCRIPTION}": "what the validation found",
    files.SETTINGS: "settings",
    files.DESCRIPTION: "input, seed, versions, machine",
    files.EVENTS: "log of the run",
}


def draw_settings(evidence: Evidence) -> Markup:
    """Settings that differ from the defaults, then all."""
    used = settings_of(evidence)
    if evidence.settings.value is None:
        lost = missing(evidence.settings.missing)
        return joined([lost, _table(used, with_default=True)]) if used else lost
    changed = [setting for setting in used if setting.differs]
    parts = (
        [_table(changed, with_default=True)] if changed else [element("p", "All settings are the defaults.")]
    )
    title = element("summary", f"All {counted(len(used), 'setting')}")
    parts.append(element("details", title, _table(used, with_default=False)))
    return joined(parts)


def _table(used: list[UsedSetting], with_default: bool) -> Markup:
    heads = ["Step", "Setting", "Value", *(["Default of this version"] if with_default else [])]
    rows = [
        element(
            "tr",
            element("td", setting.step),
            element("td", element("code", f"{setting.section}.{setting.name}")),
            element("td", _said(setting.value)),
            *([element("td", _said(setting.default))] if with_default else []),
        )
        for setting in used
    ]
    head = element("tr", *(element("th", words, scope="col") for words in heads))
    return element("table", element("thead", head), element("tbody", *rows))


def _said(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _method(described: Mapping[str, object]) -> str:
    name = {"emc": "EMC", "mtip": "M-TIP"}.get(str(described.get("method")), str(described.get("method")))
    because = described.get("method_because")
    return f"{name}. {because}" if isinstance(because, str) else name


def draw_origin(
    evidence: Evidence, phasing: PhasingFacts | None, validation: ValidationFacts | None, made: str
) -> Markup:
    """Seeds, versions, machine and times.

    made : when the page was made, and by which version.
    """
    described = evidence.described
    machine, versions = described.get("machine"), described.get("versions")
    rows: list[tuple[str, Content]] = [
        (
            "Run",
            joined(
                [element("code", str(evidence.path.resolve())), f", id {described.get('run_id', NOT_KNOWN)}"]
            ),
        ),
        ("Begun", moment(described.get("created", NOT_KNOWN))),
        ("Method", _method(described)),
        ("Seed of the reconstruction", str(described.get("seed", NOT_KNOWN))),
    ]
    if phasing is not None and phasing.seed is not None:
        rows.append(("Seed of the phasing", str(phasing.seed)))
    if validation is not None and validation.half_seeds:
        rows.append(("Seeds of the half sets", listed([str(seed) for seed in validation.half_seeds])))
    rows.append(("Device", str(described.get("device_used", NOT_KNOWN))))
    if isinstance(machine, Mapping):
        size = f"{machine.get('cores')} cores, {number(machine.get('memory_GiB'))} GiB"
        rows.append(("Machine", f"{machine.get('host')}: {machine.get('processor')}, {size}"))
    if isinstance(versions, Mapping):
        rows.append(("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    rows.append(("This page", made))
    return facts(rows)


def draw_commands(evidence: Evidence, phasing: PhasingFacts | None) -> Markup:
    """The command lines that repeat everything."""
    lines = commands(evidence, phasing)
    parts = [element("pre", element("code", "\n".join(lines)))]
    if not evidence.input.get("path"):
        parts.append(element("p", "The data came from no file: replace DATA by their path.", class_="quiet"))
    return joined(parts)


def draw_files(folder: Path, evidence: Evidence, script: str) -> Markup:
    """The files beside the page.

    folder : where the page is.
    script : the name of the ChimeraX script; empty if there is no density.
    """
    rows: list[tuple[str, Content]] = []
    if script:
        rows.append((script, "opens the maps in ChimeraX, at the threshold of this page"))
    models = {path.name: "intensity of one model" for path in sorted(folder.glob("intensity_*.mrc"))}
    for name, words in {**_FILES, **models}.items():
        if (folder / name).exists():
            rows.append((name, words))
    linked = [
        element("tr", element("td", element("a", name, href=name)), element("td", words))
        for name, words in rows
    ]
    if not linked:
        return element("p", f"There are no files beside the page; those of the run are in {evidence.path}.")
    return element("table", element("tbody", *linked))
