"""The opening of a report: what is claimed, and what a reader must know before believing it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.phase.doubt import is_doubt
from orienteer.report.evidence import Evidence
from orienteer.report.frames import TRUTH
from orienteer.report.markup import Markup, element
from orienteer.report.phasing_facts import PhasingFacts
from orienteer.report.plain_values import as_number, as_words, at
from orienteer.report.validation_facts import ValidationFacts
from orienteer.report.words import number, sentence, with_angstrom
from orienteer.run.coarse_agreement import coarse_agreement_in_words
from orienteer.run.frame_use import frame_use
from orienteer.run.method import find_method
from orienteer.run.settings_file import is_as_begun
from orienteer.run.states import missing_models_in_words

NOT_VALIDATED = "Not validated: run orienteer validate. No resolution is claimed."
# Settings with these words in their names bring in information that is not from the frames.
_BROUGHT_IN = ("known", "truth", "orientations", "start_", "initial", "model_file", "reference")
_EXPERIMENT_FILES = ("background_file", "known_orientations_file")
# The first line of the report names these already.
_SAID_FIRST = "known_orientations_"


def claim(validation: ValidationFacts | None, damaged: str = "") -> str:
    """The resolution in one honest sentence: that of the validation, if it has one.

    damaged : why an existing validation cannot be read.
    """
    if validation is None:
        return f"{damaged} No resolution is claimed." if damaged else NOT_VALIDATED
    if validation.statement:
        return sentence(with_angstrom(validation.statement))
    resolution_A = validation.resolution_A
    if resolution_A is None:
        return "No resolution can be claimed: two independently processed half sets agree nowhere."
    how = "the Fourier shell correlation of two half sets, which were oriented and phased independently,"
    where = "or better (full period): up to there" if validation.reaches_edge else "(full period): there"
    what = "stays above" if validation.reaches_edge else "falls below"
    return f"Resolution {number(resolution_A)} Å {where} {how} {what} {validation.criterion}."


def unusual(
    evidence: Evidence, phasing: PhasingFacts | None, validation: ValidationFacts | None
) -> list[str]:
    """What a reader would not expect, one sentence each, the most serious first."""
    return [
        *_another(validation),
        *_another_density(validation),
        *_brought_in(evidence),
        *_from_simulation(evidence),
        *_noise(evidence),
        *_left_out(evidence),
        *_state(evidence),
        *_doubts(phasing, validation),
        *_assumed(evidence, phasing),
        *_outdated(evidence, phasing, validation),
        *_remarks(evidence),
    ]


def draw_opening(evidence: Evidence, said: str, warnings: list[str]) -> Markup:
    """The heading, what is unusual, and the claim."""
    what = "A 3D intensity" if evidence.density.value is None else "A 3D density"
    source = _snapshots(evidence)
    version = as_words(at(evidence.described, "versions", "orienteer")) or "(version not known)"
    known = evidence.known_orientations
    where = "known" if known else "unknown"
    words = f"{what} from {source} of single particles in {where} orientations, by Orienteer {version}."
    parts = [element("h1", evidence.path.resolve().name), element("p", f"{known} {words}".strip())]
    if warnings:
        points = [element("li", words) for words in warnings]
        parts.append(
            element(
                "div", element("strong", "Know this first"), element("ul", *points), class_="unusual",
                role="note", id="unusual",
            )
        )  # fmt: skip
    parts.append(element("p", said, class_="claim", id="claim"))
    return element("header", *parts)


def _snapshots(evidence: Evidence) -> str:
    """The number of frames that made the result, of all that were given, in words."""
    frames, use = evidence.input.get("frames"), frame_use(evidence.orientations.value or {})
    if not isinstance(frames, int):
        return "diffraction snapshots"
    shown = "" if use is None or not use.left_out else f"{use.frames - use.left_out:,} of "
    return shown + counted(frames, "diffraction snapshot")


def _left_out(evidence: Evidence) -> list[str]:
    """Say if many frames were left out because they seem to show something else."""
    use = frame_use(evidence.orientations.value or {})
    return [use.words] if use is not None and use.leaves_out_many else []


def _another(validation: ValidationFacts | None) -> list[str]:
    """Say if the run does not show what its own halves agree on."""
    if validation is None or not validation.run_is_another:
        return []
    return [
        "The run of all frames does not show what its halves agree on: do not trust the maps of this page. "
        "Reconstruct it again, with another --seed or with more --starts."
    ]


def _another_density(validation: ValidationFacts | None) -> list[str]:
    """Say if the density of the run, which the page shows, is not that of its halves."""
    return [] if validation is None else [with_angstrom(words) for words in validation.doubts]


def _brought_in(evidence: Evidence) -> list[str]:
    """Orientations, models or truth that the run was given rather than found."""
    found = []
    for section, values in (evidence.settings.value or {}).items():
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if name.startswith(_SAID_FIRST):
                continue
            if any(word in name for word in _BROUGHT_IN) and value not in (
                "",
                0,
                False,
                None,
                "auto",
                "random",
            ):
                found.append(
                    f"The run was given information that is not in its frames: {section}.{name} = {value}."
                )
    files = evidence.described.get("files")
    for name in files if isinstance(files, Mapping) else ():
        if name not in _EXPERIMENT_FILES and not any(f".{name} " in words for words in found):
            found.append(f"The run was given a file besides its frames: {name}.")
    return found


def _from_simulation(evidence: Evidence) -> list[str]:
    frames = evidence.frames.value
    if frames is None or not frames.simulated:
        return []
    if str(evidence.method_settings.get("known_orientations_column", "")).startswith(TRUTH):
        return ["The frames are simulated, and their true orientations were given to the run."]
    return ["The frames are simulated. Their true orientations are in the file but were not used."]


def _state(evidence: Evidence) -> list[str]:
    """Say if the run has not finished, or ended because of a limit."""
    events = evidence.events.value or []
    turns = [
        event for event in events if event["event"] in ("started", "resumed", "stopped", "failed", "finished")
    ]
    if not turns:
        return [evidence.events.missing or "The run has not been started."]
    last = turns[-1]
    iteration = evidence.steps[-1]["iteration"] if evidence.steps else 0
    after = f"after {counted(iteration, 'iteration')}"
    if last["event"] == "finished":
        missing = missing_models_in_words(evidence.method_settings, events)
        said = [sentence(str(last.get("reason", "")))] if last.get("at_limit") else []
        steps, volumes = evidence.steps, evidence.intensities.value or ()
        coarse = coarse_agreement_in_words(steps[-1], evidence.method_settings, volumes) if steps else ""
        return [*said, *(with_angstrom(words) for words in (missing, coarse) if words)]
    if last["event"] == "failed":
        return [f"The run failed {after}: {sentence(str(last.get('reason', 'no reason is known')))}"]
    if last["event"] == "stopped":
        return [f"The run was stopped {after} and has not finished."]
    return [f"The run has not finished; this is its state {after}."]


def _noise(evidence: Evidence) -> list[str]:
    """Say if the model predicts frames that it has not seen no better than one without any structure."""
    gain = as_number(evidence.steps[-1].get("sentinel_gain_nats")) if evidence.steps else None
    if gain is None or gain > 0:
        return []
    return [
        "The intensity predicts frames that were never merged no better than its radial mean does: it shows "
        "nothing but noise."
    ]


def _doubts(phasing: PhasingFacts | None, validation: ValidationFacts | None) -> list[str]:
    """Densities that do not fit the intensities that they were phased from."""
    said = [f"The density: {words}" for words in phasing.remarks] if phasing is not None else []
    said += validation.remarks if validation is not None else []
    return [with_angstrom(re.sub(r"^half_(\d)", r"Half set \1", words)) for words in said if is_doubt(words)]


def _assumed(evidence: Evidence, phasing: PhasingFacts | None) -> list[str]:
    """What was imposed on the result rather than found in the data."""
    emc, found = evidence.method_settings, []
    symmetry, given = evidence.symmetry, evidence.given_symmetry
    if given != "C1":
        found.append(f"The symmetry {given} was imposed on the intensity, not found.")
    elif symmetry != "C1":
        found.append(
            f"The symmetry {symmetry} was found in the first intensity, not contradicted by frames that did "
            "not contribute to it, and imposed from then on."
        )
    if phasing is not None and phasing.symmetry not in ("", "C1", symmetry):
        found.append(f"The symmetry {phasing.symmetry} was imposed on the density, not found.")
    models = len(evidence.intensities.value or ())
    if models > 1:
        how = "as many as the data distinguish" if emc.get("models") == "auto" else "a number that was given"
        found.append(f"The frames were shared among {counted(models, 'model')}, {how}.")
    if emc.get("halves") is False:
        found.append("Frames were oriented by a model that they are part of: noise can look like signal.")
    return found


def _outdated(
    evidence: Evidence, phasing: PhasingFacts | None, validation: ValidationFacts | None
) -> list[str]:
    """Files that were changed, or made from an earlier version of other files."""
    found = []
    if _has_other_settings(evidence):
        found.append(
            "settings.toml was changed after the run had begun; it may not show the settings that were used."
        )
    if phasing is not None and evidence.has_changed_since(phasing.run_id, phasing.iteration):
        found.append("The run has changed since it was phased: the density is that of an earlier intensity.")
    if validation is not None and evidence.has_changed_since(validation.run_id, validation.iteration):
        found.append("The run has changed since it was validated: the resolution is that of an earlier one.")
    return found


def _has_other_settings(evidence: Evidence) -> bool:
    settings, described = evidence.settings.value, evidence.described
    if settings is None or not all(isinstance(values, Mapping) for values in settings.values()):
        return False
    try:
        section = find_method(as_words(described.get("method"))).settings
    except OrienteerError:  # a method that this version does not know
        return False
    return not is_as_begun(settings, section, as_words(described.get("settings_hash")))


def _remarks(evidence: Evidence) -> list[str]:
    """The run's own remarks about its data and its checkpoints."""
    events = evidence.events.value or []
    begun = [event for event in events if event["event"] in ("started", "resumed")]
    remarks = begun[-1].get("remarks") if begun else None
    found = [sentence(with_angstrom(str(remark))) for remark in remarks] if isinstance(remarks, list) else []
    return found + [sentence(str(event["note"])) for event in begun if event.get("note")]
