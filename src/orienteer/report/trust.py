"""The section on how far to trust the result: half sets, phases, sentinels, directions."""

from __future__ import annotations

import math

from orienteer.compare.criteria import HALF_BIT, LEVELS
from orienteer.compute.words import counted
from orienteer.report.chart import Chart, Curve, Guide
from orienteer.report.curves import Q
from orienteer.report.evidence import Evidence
from orienteer.report.figure import chart_figure, facts, figures, missing, remarks
from orienteer.report.markup import Content, Markup, joined
from orienteer.report.phasing_facts import PhasingFacts
from orienteer.report.validation_facts import ValidationFacts
from orienteer.report.words import number
from orienteer.validate.half_maps import CURVES
from orienteer.validate.result import is_beyond

# Label and colour of each curve, and whether it is dashed.
_LOOKS = (
    ("corrected for the mask", 1, False),
    ("masked", 2, False),
    ("unmasked", 3, True),
    ("masked, phases random", 4, True),
    (HALF_BIT, None, True),
)


def draw_trust(
    evidence: Evidence, validation: ValidationFacts | None, phasing: PhasingFacts | None
) -> Markup:
    """The section."""
    parts: list[Markup] = []
    if validation is None:
        parts.append(missing(evidence.validation.missing))
    else:
        parts.append(facts(_rows(evidence, validation, phasing)))
        parts.append(remarks(validation.remarks))
    drawn = [
        None if validation is None else _fsc(validation, bool(evidence.known_orientations)),
        None if phasing is None else _prtf(phasing),
        None if validation is None else _intensities(validation),
        None if validation is None else _errors(validation),
    ]
    parts.append(figures(*drawn))
    return joined(parts)


def _rows(
    evidence: Evidence, facts: ValidationFacts, phasing: PhasingFacts | None
) -> list[tuple[str, Content]]:
    rows: list[tuple[str, Content]] = []
    edge = max((q for q in facts.q_inv_A if q is not None), default=0.0)
    for name, resolution_A in facts.resolutions_A.items():
        words = "the halves do not agree" if resolution_A is None else f"{number(resolution_A)} Å"
        if resolution_A is not None and edge and 1 / resolution_A >= edge * (1 - 1e-6):
            words += " or better (edge of the data)"
        if resolution_A is not None and facts.too_few_speckles:
            words += ", on too few speckles"
        elif resolution_A is not None and facts.resolution_A is None:  # even densities of noise agree in it
            words += ", in the radial mean only"
        elif is_beyond(facts.resolution_A, resolution_A):
            words += f", beyond {number(facts.resolution_A)} Å in the radial mean only"
        rows.append((f"Resolution by FSC {name}" if name[:1] == "0" else f"Resolution by {name}", words))
    if facts.half_frames:
        rows.append(("Frames of the half sets", " and ".join(f"{n:,}" for n in facts.half_frames)))
    if facts.intensity_A is not None:
        rows.append(("The speckles of the half sets agree to", f"{number(facts.intensity_A)} Å"))
    if facts.whole_A is not None or facts.run_is_another:
        words = "nothing" if facts.whole_A is None else f"{number(facts.whole_A)} Å"
        rows.append(("The speckles of the run agree with them to", words))
    if phasing is not None:
        words = "nothing" if facts.density_A is None else f"{number(facts.density_A)} Å (FSC 0.5)"
        if not facts.density_q_inv_A:
            words = "not compared"
            # Of an earlier intensity it never is; a remark then tells what to do.
            if not evidence.has_changed_since(phasing.run_id, phasing.iteration):
                words += ": run orienteer validate again"
        rows.append(("The density of the run agrees with those of the half sets to", words))
    if facts.sentinel_deg is not None:
        frames = (
            ""
            if facts.n_sentinels is None
            else f" of {counted(facts.n_sentinels, 'frame')} that neither has seen"
        )
        chance = "" if facts.chance_deg is None else f"; random poses would give {number(facts.chance_deg)}"
        rows.append(
            (
                "The halves agree on poses to",
                f"{number(facts.sentinel_deg)} degrees, the median{frames}{chance}",
            )
        )
    if facts.empty_share is not None:
        at_A = f" at {number(1 / facts.coverage_q_inv_A)} Å" if facts.coverage_q_inv_A else ""
        gap = ""
        if facts.largest_gap_deg:
            gap = f"; the widest empty cone has a half-angle of {number(facts.largest_gap_deg)} degrees"
        rows.append((f"Directions without data{at_A}", f"{100 * facts.empty_share:.2g} %{gap}"))
    if facts.worst_density is not None:
        rows.append(("Data in the worst direction", f"{number(facts.worst_density)} of the mean"))
    return rows


def _fsc(facts: ValidationFacts, knows: bool) -> Markup | None:
    """The Fourier shell correlation.  knows : whether orientations were given, to both halves."""
    curves = [
        Curve(words, facts.q_inv_A, facts.fsc[name], colour, dashed)
        for name, (words, colour, dashed) in zip(CURVES, _LOOKS, strict=True)
        if facts.fsc.get(name)
    ]
    if facts.density_q_inv_A:
        curves.append(Curve("the run and a half", facts.density_q_inv_A, facts.density_fsc, 5, dashed=True))
    guides = [Guide(level, name) for name, level in LEVELS.items()]
    if facts.resolution_A is not None:
        guides.append(Guide(1 / facts.resolution_A, f"{number(facts.resolution_A)} Å", vertical=True))
    chart = Chart(
        "fsc", "Fourier shell correlation of the half sets", Q, "Fourier shell correlation", curves, guides,
        y_range=(0.0, 1.0), resolution_above=True,
    )  # fmt: skip
    apart = "The two densities share no frame, no start and no support"
    if knows:
        return chart_figure(chart, f"{apart}, but the orientations of both were given.")
    return chart_figure(chart, f"{apart}: each half was processed by itself.")


def _prtf(facts: PhasingFacts) -> Markup | None:
    guides = [Guide(math.exp(-1), "1/e")]
    if facts.prtf_A:
        guides.append(Guide(1 / facts.prtf_A, f"{number(facts.prtf_A)} Å", vertical=True))
    chart = Chart(
        "prtf", "Phase retrieval transfer function", Q, "PRTF",
        [Curve("", facts.prtf_q_inv_A, facts.prtf)], guides, y_range=(0.0, 1.0), resolution_above=True,
    )  # fmt: skip
    words = "How well phases repeat from start to start. It measures repeatability, not truth."
    return chart_figure(chart, words)


def _intensities(facts: ValidationFacts) -> Markup | None:
    curves = [
        Curve("the two halves", facts.intensity_q_inv_A, facts.intensity_correlation),
        Curve("the run and a half", facts.whole_q_inv_A, facts.whole_correlation, 2, dashed=True),
    ]
    chart = Chart(
        "intensity-correlation", "Correlation of the intensities", Q, "correlation", curves,
        [Guide(0.5, "0.5")], y_range=(0.0, 1.0), resolution_above=True,
    )  # fmt: skip
    return chart_figure(chart, "Before phasing, with the mean of each shell subtracted; 1 is perfect.")


def _errors(facts: ValidationFacts) -> Markup | None:
    chart = Chart(
        "intensity-error", "Error of the intensity", Q, "relative standard deviation",
        [Curve("", facts.error_q_inv_A, facts.relative_error)], log_y=True, resolution_above=True,
    )  # fmt: skip
    how = "groups" if facts.n_replicates is None else counted(facts.n_replicates, "group")
    words = f"By bootstrap: {how} of frames were each merged at fixed poses, before any filter."
    return chart_figure(chart, words)
