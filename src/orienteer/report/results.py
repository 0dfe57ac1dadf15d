"""The sections on the iterations, the intensity, the density and its surface."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orienteer.compute.words import counted, in_three_digits, time_in_words
from orienteer.errors import OrienteerError
from orienteer.report.curves import histogram, radial_charts, step_charts
from orienteer.report.directions import draw_directions
from orienteer.report.evidence import Evidence
from orienteer.report.figure import chart_figure, facts, figure, figures, missing, remarks
from orienteer.report.markup import Content, Markup, element, joined
from orienteer.report.phasing_facts import ARBITRARY, PhasingFacts
from orienteer.report.plain_values import as_number
from orienteer.report.planes import draw_density, draw_intensity, draw_projections
from orienteer.report.viewer import draw_surface
from orienteer.report.words import (
    listed,
    moment,
    number,
    sentence,
    with_angstrom,
    with_unit,
)
from orienteer.run.frame_use import frame_use

MOST_MODELS = 4
_CAPTIONS = {
    "log-likelihood": "ln P(frame | model) over all poses, averaged over the frames; while the temperature "
    "is above 1, a lower bound. It jumps when other pixels are used.",
    "change": "Relative change of the intensity from one iteration to the next.",
    "temperature": "Scores are divided by it; 1 is the likelihood itself. It stays as high as the grid of "
    "orientations requires.",
    "resolution": "Where the correlation of the two halves of the run falls below 0.5, and how far the "
    "pixels reach that orient frames.",
    "poses": "Median angle between the poses that the two halves give to frames that neither has merged.",
    "radial-mean": "Mean over all directions, at mean fluence.",
    "half-correlation": "Each half is oriented by the other, so this is not an independent resolution.",
}  # fmt: skip


def draw_iterations(evidence: Evidence) -> Markup:
    """How the run went."""
    steps = evidence.steps
    if not steps:
        said = missing(evidence.events.missing or "No iteration is done yet.")
        return joined([said, _draw_frames(evidence)])
    last = steps[-1]
    radial = last.get("radial")
    charts = step_charts(steps)
    if isinstance(radial, Mapping):
        charts += radial_charts(radial, as_number(last.get("agrees_to_A")))
    dotted = element(
        "p", "At dotted vertical lines, another random start or a finer stage begins.", class_="quiet"
    )
    drawn = [chart_figure(chart, _CAPTIONS[chart.name]) for chart in charts]
    return joined([facts(_iteration_rows(evidence)), figures(*drawn), dotted, _draw_frames(evidence)])


def _iteration_rows(evidence: Evidence) -> list[tuple[str, Content]]:
    steps, events = evidence.steps, evidence.events.value or []
    last, first = steps[-1], events[0]
    end = next((event for event in reversed(events) if event["event"] == "finished"), None)
    seconds = sum(as_number(step.get("seconds")) or 0.0 for step in steps)
    n_sessions = sum(event["event"] in ("started", "resumed") for event in events)
    rows: list[tuple[str, Content]] = [
        (
            "Iterations",
            f"{last['iteration']:,} in {counted(n_sessions, 'session')}, {time_in_words(seconds)} of work",
        ),
        ("Begun and last written", f"{moment(first.get('time'))}, {moment(events[-1].get('time'))}"),
        ("Why it ended", sentence(str(end.get("reason", ""))) if end else "It has not ended."),
        ("Log-likelihood", with_unit(as_number(last.get("log_likelihood")), "nats per frame", 6)),
        ("Pixels that orient frames reach to", with_unit(as_number(last.get("resolution_A")), "Å")),
        ("The two halves of the run agree to", with_unit(as_number(last.get("agrees_to_A")), "Å (0.5)")),
        ("Orientations searched", number(last.get("n_rotations"))),
        ("Orientations per frame", number(as_number(last.get("perplexity")))),
        ("Photons merged", number(as_number(last.get("photons_merged")))),
    ]
    gain = as_number(last.get("sentinel_gain_nats"))
    if gain is not None:
        words = f"{number(gain)} nats per frame better than by its radial mean"
        rows.append(("The model predicts unseen frames", words))
    return rows + _chosen_rows(evidence)


def _chosen_rows(evidence: Evidence) -> list[tuple[str, Content]]:
    """How many frames were left out, and how many are sentinels."""
    use = frame_use(evidence.orientations.value or {})
    if use is None:
        return []
    return [
        ("Frames left out as showing something else", f"{use.left_out:,} of {use.frames:,}"),
        ("Frames oriented but never merged (sentinels)", f"{use.watched:,}"),
    ]


def _draw_frames(evidence: Evidence) -> Markup:
    """Orientations and fluences of the frames."""
    table = evidence.orientations.value
    if table is None:
        return missing(evidence.orientations.missing)
    parts: list[Markup | None] = []
    group = evidence.symmetry
    quaternions = np.asarray(table.get("quaternion", np.zeros((0, 4))))
    try:
        svg = (
            draw_directions(quaternions, group)
            if quaternions.ndim == 2 and quaternions.shape[1] == 4
            else None
        )
    except OrienteerError:  # not the name of a symmetry
        svg = None
    if svg is not None:
        words = "Equal-area map; 1 is even coverage."
        words += f" Equivalent directions of {group} count as one." if group != "C1" else ""
        parts.append(figure("directions", svg, words))
    fluence = np.asarray(table.get("fluence", np.zeros(0)), np.float64)
    chart = histogram("fluence", "Fluence of the frames", "fluence (mean 1)", fluence)
    parts.append(chart_figure(chart, "As estimated from the frames, relative to their mean."))
    flat = None
    if len(fluence) and parts[-1] is None:
        flat = element("p", f"All {counted(len(fluence), 'frame')} have the same fluence.", class_="quiet")
    return joined(part for part in (figures(*parts), flat) if part is not None)


def draw_intensities(evidence: Evidence) -> Markup:
    """Planes of the intensity of each model."""
    volumes = evidence.intensities.value
    if not volumes:
        return missing(evidence.intensities.missing)
    parts: list[Markup] = []
    for index, volume in enumerate(volumes[:MOST_MODELS], start=1):
        name = "intensity" if len(volumes) == 1 else f"intensity-{index}"
        words = "The intensity" if len(volumes) == 1 else f"State {index}"
        step, edge = volume.voxel_size[0], " × ".join(map(str, volume.shape))
        caption = (
            f"{words}: planes through the centre, logarithmic; {edge} voxels of {number(step)} 1/Å. "
            "Grey: never measured."
        )
        parts.append(figure(name, draw_intensity(volume, words), caption))
    if len(volumes) > MOST_MODELS:
        parts.append(element("p", f"{len(volumes) - MOST_MODELS} further states are in intensity.h5."))
    return joined(parts)


def draw_result(evidence: Evidence, phasing: PhasingFacts | None) -> Markup:
    """The density: a surface that can be turned, planes, projections, and the facts of phasing."""
    density = evidence.density.value
    if density is None:
        if loop := _draw_loop_density(evidence):
            return joined(loop)
        said = dict.fromkeys([evidence.density.missing, evidence.phasing.missing])
        return joined(missing(words) for words in said if words)
    unit = phasing.unit if phasing is not None else ARBITRARY
    parts = [draw_surface(density, evidence.halves, unit, evidence.levels)]
    others = [folder.name for folder in sorted(evidence.path.glob("phased_model_*")) if folder.is_dir()]
    if others:
        words = f"This is state 1; the densities of other states are in {listed(others)}."
        parts.insert(0, element("p", words, class_="quiet"))
    edge = " × ".join(map(str, density.shape))
    voxels = (
        f"{edge} voxels of {number(density.voxel_size[0])} Å; empty space around the particle is cut off."
    )
    parts.append(
        figure("density", draw_density(density, unit), f"Planes through the middle of the particle. {voxels}")
    )
    parts.append(
        figure("projections", draw_projections(density, unit), "The density summed along each axis.")
    )
    if phasing is None:
        parts.append(missing(evidence.phasing.missing))
    else:
        parts.append(facts(_phasing_rows(phasing)))
        parts.append(remarks(phasing.remarks))
    return joined(parts)


def _draw_loop_density(evidence: Evidence) -> list[Markup]:
    """The density that the loop of M-TIP phased, if there is no other."""
    density = evidence.loop_density.value
    if density is None:
        return [missing(evidence.loop_density.missing)] if evidence.loop_density.is_damaged else []
    words = (
        "This density was phased in the loop of M-TIP, once in each half, and is the mean of both: a first "
        "look that does not show how far its phases repeat. orienteer phase makes one from many starts."
    )
    return [
        element("p", words),
        draw_surface(density, evidence.halves, ARBITRARY),
        figure("density", draw_density(density, ARBITRARY), "Planes through the middle of the particle."),
        figure("projections", draw_projections(density, ARBITRARY), "The density summed along each axis."),
    ]


def _phasing_rows(phasing: PhasingFacts) -> list[tuple[str, Content]]:
    rows: list[tuple[str, Content]] = []
    if phasing.n_starts is not None:
        n_agree = phasing.n_averaged
        agree = "" if n_agree is None else f", {n_agree:,} of them agree and were averaged"
        rows.append(("Random starts", f"{phasing.n_starts:,}{agree}"))
    if len(phasing.cluster_sizes) > 1:
        rows.append(("Sizes of the clusters of starts", ", ".join(map(str, phasing.cluster_sizes))))
    if phasing.r_factor is not None:
        rows.append(("R factor of the amplitudes", number(phasing.r_factor)))
    if phasing.free_log_likelihood is not None:
        rows.append(("Log-likelihood of voxels left out", number(phasing.free_log_likelihood, 5)))
    if phasing.diameter_A is not None:
        rows.append(("Largest extent", with_unit(phasing.diameter_A, "Å")))
    volumes = {"support": phasing.support_volume_A3, "particle": phasing.particle_volume_A3}
    rows += [
        (f"Volume of the {name}", f"{in_three_digits(volume)} Å³")
        for name, volume in volumes.items()
        if volume
    ]
    if phasing.edge_A is not None:
        edge = with_unit(phasing.edge_A, "Å")
        rows.append(("Edge of the data", f"{edge}; the constraints alone determine finer waves"))
    if phasing.weak_modes:
        rows.append(("What the data do not determine", sentence(with_angstrom(phasing.weak_modes))))
    if phasing.background:
        rows.append(("Flat background subtracted", number(phasing.background)))
    source = f", from {phasing.scale_source}" if phasing.unit != ARBITRARY and phasing.scale_source else ""
    rows.append(("Unit of the density", f"{phasing.unit}{source}"))
    if phasing.hand:
        rows.append(("Hand", sentence(phasing.hand)))
    return rows
