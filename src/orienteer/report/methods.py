"""A draft of the methods paragraph of a paper, made from the facts of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orienteer.compute.words import counted
from orienteer.reconstruction.orienting.known_orientations import GIVEN_ALL
from orienteer.report import references
from orienteer.report.evidence import Evidence
from orienteer.report.measured import used_wavelength_A, wavelength_in_words
from orienteer.report.phasing_facts import PhasingFacts
from orienteer.report.plain_values import as_number, as_tables, as_texts, as_words, at
from orienteer.report.references import Reference
from orienteer.report.validation_facts import ValidationFacts
from orienteer.report.words import NOT_KNOWN, listed, number, sentence
from orienteer.run.frame_use import frame_use
from orienteer.run.states import occupancies_in_words

_NOISE = {
    "poisson": "Poisson statistics of the photons",
    "negative-binomial": "negative binomial statistics, which include the error of the model itself",
    "gaussian": "Gaussian statistics",
}
_ITERATIONS = {
    "er": ("error reduction", references.FIENUP),
    "hio": ("hybrid input-output", references.FIENUP),
    "raar": ("relaxed averaged alternating reflections", references.RAAR),
    "dm": ("the difference map", references.DIFFERENCE_MAP),
}
# What the verdict about the density of the run adds to how far it agrees.
_OF_DENSITY = {
    "holds to its end": ", where it ends: the resolution applies to it only to there",
    "does not hold": ": the resolution does not apply to it",
}


def methods(
    evidence: Evidence, phasing: PhasingFacts | None, validation: ValidationFacts | None
) -> tuple[list[str], list[Reference]]:
    """The sentences and the papers that they cite."""
    settings = evidence.method_settings
    said = [evidence.known_orientations, *_data(evidence)]
    cited: list[Reference] = []
    if settings:
        cited = [references.MTIP] if evidence.described.get("method") == "mtip" else [references.EMC]
        said += _reconstruction(evidence, settings)
    if phasing is not None:
        sentences, more = _phasing(phasing)
        said, cited = said + sentences, cited + more
    if validation is not None:
        sentences, more = _validation(validation, bool(evidence.known_orientations))
        said, cited = said + sentences, cited + more
    return [one for one in said if one], cited


def _data(evidence: Evidence) -> list[str]:
    given, detector, frames = evidence.input, evidence.detector.value, evidence.frames.value
    n_frames = given.get("frames")
    if not isinstance(n_frames, int):
        return []
    wavelength = wavelength_in_words(evidence)
    at_wavelength = f" at a wavelength of {wavelength}" if used_wavelength_A(evidence) else ""
    kind = (
        "simulated diffraction patterns"
        if frames is not None and frames.simulated
        else "diffraction patterns"
    )
    said = [f"The data are {n_frames:,} {kind} of single particles{at_wavelength}."]
    if detector is not None:
        n_used = int((detector.mask < 2).sum())
        said.append(
            f"The detector was {number(detector.distance_m * 1e3, 4)} mm from the sample; {n_used:,} of "
            f"its {counted(detector.n_pixels, 'pixel')} were used."
        )
    if frames is not None and len(frames.photons):
        said.append(
            f"A pattern has {number(float(frames.photons.mean()))} photons on these pixels on average."
        )
    return said


def _how(evidence: Evidence, settings: Mapping[str, Any]) -> str:
    """The name of the method, with its reference."""
    if evidence.described.get("method") != "mtip":
        return f"by expansion, maximisation and compression ({references.EMC.short})"
    phased = "phased in the loop" if settings.get("phasing") is not False else "without phasing in the loop"
    return f"by multi-tiered iterative phasing ({references.MTIP.short}), as an autocorrelation {phased},"


def _symmetry(evidence: Evidence) -> str:
    if evidence.given_symmetry != "C1":
        return f"The symmetry {evidence.given_symmetry} was imposed."
    if evidence.symmetry != "C1":
        return (
            f"The symmetry {evidence.symmetry} was found in the intensity of the first stage, tested on "
            "patterns that did not contribute to it, and imposed from then on."
        )
    return "No symmetry was imposed."


def _reconstruction(evidence: Evidence, emc: Mapping[str, Any]) -> list[str]:
    described, steps = evidence.described, evidence.steps
    version = as_words(at(described, "versions", "orienteer"))
    # The settings may leave the number of starts to the run, so take it from the steps.
    n_starts = max((step.get("start", 1) for step in steps), default=1)
    n_models = len(evidence.intensities.value or (None,))
    is_found = evidence.symmetry != evidence.given_symmetry and not emc.get("starts")
    chosen = "one that showed a symmetry among" if is_found else "the likeliest of"
    start = "a random start" if n_starts == 1 else f"{chosen} {n_starts} starts"
    models = (
        "The three-dimensional intensity was"
        if n_models == 1
        else f"{n_models} three-dimensional intensities were"
    )
    knowing = (
        "at known orientations"
        if evidence.known_orientations
        else "without any knowledge of the orientations"
    )
    said = [
        f"{models} reconstructed with Orienteer {version} {_how(evidence, emc)} from {start} "
        f"(seed {described.get('seed', NOT_KNOWN)}), {knowing}.",
        *_states(evidence, emc, n_models),
        f"Patterns were scored by {_NOISE.get(str(emc.get('likelihood')), str(emc.get('likelihood')))}.",
        _symmetry(evidence),
    ]
    if emc.get("fluence") == "estimate" or (emc.get("fluence") == "auto" and _fluences_vary(evidence)):
        said.append("The fluence of every pattern was estimated together with its orientation.")
    if emc.get("background_file"):
        said.append("A measured background was part of the expected counts.")
    elif emc.get("background") == "estimate":
        said.append("A background was estimated from the patterns and was part of the expected counts.")
    if emc.get("halves") is True:
        done = "has a model of its own" if _knows_all(evidence) else "was oriented by the model of the other"
        said.append(f"The patterns were divided into two halves, each of which {done}.")
    sentinels = as_number(emc.get("sentinels"))
    if sentinels:
        said.append(f"{100 * sentinels:g} % of the patterns were oriented but never merged.")
    use = frame_use(evidence.orientations.value or {})
    if use is not None and use.left_out:
        said.append(use.words.replace("frames", "patterns"))
    if steps:
        last = steps[-1]
        grid = f"{number(last.get('n_rotations'))} orientations (600-cell, level {last.get('grid_level')})"
        what = "merged patterns" if _knows_all(evidence) else f"searched {grid},"
        said.append(
            f"The last of {counted(last['iteration'], 'iteration')} {what} with data to "
            f"{number(as_number(last.get('resolution_A')))} Å."
        )
        if emc.get("refine") is True and last.get("finished") and not _knows_all(evidence):
            said.append("At the end, poses were refined off the grid and the patterns were merged again.")
        if last.get("finished") and last.get("reason"):
            said.append(f"Why the run ended: {sentence(str(last['reason']))}")
    return said


def _knows_all(evidence: Evidence) -> bool:
    """Whether the orientations of all patterns were given; the run says so before its first step."""
    begun = [event for event in evidence.events.value or [] if event["event"] in ("started", "resumed")]
    remarks = as_texts(begun[-1].get("remarks")) if begun else []
    given = bool(evidence.known_orientations)
    return given and any(words.startswith(GIVEN_ALL) for words in remarks)


def _states(evidence: Evidence, settings: Mapping[str, Any], n_models: int) -> list[str]:
    """How many states there are, how their number was chosen, and how often each occurs."""
    if n_models == 1:
        if settings.get("models") != "auto" or not evidence.steps:
            return []
        return ["Frames that no model had seen did not support more than one state."]
    who = (
        "as many as frames that no model had seen could distinguish"
        if settings.get("models") == "auto"
        else "a number that was given"
    )
    last = evidence.steps[-1] if evidence.steps else {}
    shares = occupancies_in_words(as_tables(last.get("states")))
    return [
        f"There are {n_models} states, {who}; every pattern was shared among them by its probabilities"
        + (f", which gives {shares}." if shares else ".")
    ]


def _fluences_vary(evidence: Evidence) -> bool:
    table = evidence.orientations.value or {}
    fluence = table.get("fluence")
    return (
        fluence is not None and len(fluence) > 1 and float(fluence.std()) > 1e-6 * abs(float(fluence.mean()))
    )


def _phasing(phasing: PhasingFacts) -> tuple[list[str], list[Reference]]:
    schedule = as_words(phasing.settings.get("schedule"))
    named = dict.fromkeys(re.findall(r"[a-z]+", schedule))  # in their order, each once
    names = [name for name in named if name in _ITERATIONS]
    cited = [_ITERATIONS[name][1] for name in names]
    how = " and ".join(f"{_ITERATIONS[name][0]} ({_ITERATIONS[name][1].short})" for name in names)
    starts = "" if phasing.n_starts is None else f" from {counted(phasing.n_starts, 'random start')}"
    seed = "" if phasing.seed is None else f" (seed {phasing.seed})"
    by, order = f" by {how}" if how else "", f", schedule {schedule}" if schedule else ""
    said = [f"The intensity was phased{starts}{seed}{by}{order}."]
    if phasing.n_averaged is not None:
        said.append(
            f"{counted(phasing.n_averaged, 'start')} that agree were aligned by shift and hand, and averaged."
        )
    if phasing.settings.get("positivity") is True:
        said.append("The density was constrained to be nowhere negative.")
    volume = as_number(phasing.settings.get("support_volume_A3"))
    said.append(
        f"The volume of the support was given as {number(volume)} Å³."
        if volume
        else "The volume of the support was chosen to best predict intensities that were left out."
    )
    if phasing.prtf_A is not None:
        where = (
            "stays above 1/e up to the edge of the data,"
            if phasing.prtf_reaches_edge
            else "falls below 1/e at"
        )
        said.append(
            f"The phase retrieval transfer function ({references.PRTF.short}) {where} "
            f"{number(phasing.prtf_A)} Å."
        )
        cited.append(references.PRTF)
    if phasing.r_factor is not None:
        said.append(f"The R factor of the amplitudes is {number(phasing.r_factor)}.")
    return said, cited


def _validation(validation: ValidationFacts, knows: bool) -> tuple[list[str], list[Reference]]:
    """knows : whether orientations were given, to both halves."""
    cited = [references.FSC]
    done = "merged at the known orientations" if knows else "oriented, merged"
    said = [
        "To measure the resolution, the patterns were divided into two half sets by a hash of their event "
        f"numbers; each was {done} and phased by itself, with its own random start and support.",
    ]
    if validation.too_few_speckles:
        said.append(
            "The half sets agree, but on too few speckles to rule out chance, so no resolution is claimed."
        )
    elif validation.resolution_A is None:
        said.append("The half sets do not agree, so no resolution is claimed.")
    else:
        by = validation.criterion
        if by == "0.143":
            cited.append(references.GOLD)
        said.append(
            f"Aligned by rotation, shift and hand, they agree to {number(validation.resolution_A)} Å: up to "
            f"there both their Fourier shell correlation ({references.FSC.short}) stays above {by} and the "
            "speckles of their intensities agree."
        )
    if validation.states:
        each = [
            "nowhere"
            if state.resolution_A is None
            else f"{number(state.resolution_A)} Å{'' if state.is_distinct else ' (as well as with another)'}"
            for state in validation.states
        ]
        said.append(f"This is for state 1; the states in their order agree to {listed(each)}.")
    if validation.run_is_another:
        said.append(
            "The intensity of all patterns shows other speckles: the resolution does not apply to its maps."
        )
    if validation.resolution_A is not None and validation.whole_A is not None:
        said.append(
            f"The intensity of all patterns shows the same speckles to {number(validation.whole_A)} Å."
        )
    if validation.resolution_A is not None and validation.density_q_inv_A:
        where = "nowhere" if validation.density_A is None else f"to {number(validation.density_A)} Å"
        but = _OF_DENSITY.get(validation.density_verdict, "")
        said.append(
            f"The density of all patterns agrees with that of a half set {where} (correlation 0.5){but}."
        )
    if validation.is_corrected:
        said.append(
            "The correlation that the mask itself causes was removed by randomising phases "
            f"({references.RANDOM_PHASES.short})."
        )
        cited.append(references.RANDOM_PHASES)
    if "half_bit" in validation.fsc or "half-bit" in validation.resolutions_A:
        cited.append(references.HALF_BIT)
    return said, cited
