"""The section on what was measured: frames, photons, detector, wavelength, pixels and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from orienteer.compute.words import counted
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError
from orienteer.report.curves import histogram
from orienteer.report.evidence import Evidence
from orienteer.report.figure import chart_figure, facts, figure, figures, missing
from orienteer.report.frames import Frames
from orienteer.report.markup import Content, Markup, element, joined
from orienteer.report.picture import Colours, Plane, draw_planes
from orienteer.report.plain_values import as_number, at
from orienteer.report.words import NOT_KNOWN, number, with_unit

KEV_A = 12.398419843  # photon energy in keV times wavelength in Å
_LARGEST_PICTURE = 512


def draw_measured(evidence: Evidence) -> Markup:
    """The section."""
    parts: list[Markup] = []
    if evidence.description.missing:
        parts.append(missing(evidence.description.missing))
    parts.append(facts(_rows(evidence)))
    frames, detector = evidence.frames, evidence.detector
    if frames.missing:
        parts.append(missing(f"The photons could not be counted. {frames.missing}"))
    if detector.missing:
        parts.append(missing(detector.missing))
    if frames.value is not None:
        looked = counted(len(frames.value.photons), "frame")
        chart = histogram("photons", "Photons per frame", "photons on used pixels", frames.value.photons)
        shown = chart_figure(chart, f"Photons in {looked}, sampled evenly from the data.")
        parts.append(figures(_mean_frame(frames.value, detector.value, looked), shown))
    return joined(parts)


def photons_in_words(frames: Frames) -> str:
    """Mean and spread of the photons of a frame."""
    photons = frames.photons
    if not len(photons):
        return NOT_KNOWN
    low, high = (float(value) for value in np.percentile(photons, [5, 95]))
    return f"{number(float(photons.mean()))} on average, 5 % to 95 %: {number(low)} to {number(high)}"


def wavelength_in_words(evidence: Evidence) -> str:
    """The wavelength and the photon energy."""
    given = evidence.input.get("wavelength_A")
    wavelength_A = as_number(given)
    if wavelength_A is None:
        return "varies from frame to frame" if isinstance(given, str) else NOT_KNOWN
    return f"{number(wavelength_A, 4)} Å ({number(KEV_A / wavelength_A, 4)} keV)"


def pixels_in_words(detector: Detector) -> str:
    """How many pixels orient and merge, only merge, or are masked."""
    uses = {use: int((detector.mask == use).sum()) for use in PixelUse}
    parts = [f"{uses[PixelUse.ORIENT_AND_MERGE]:,} orient and are merged"]
    if uses[PixelUse.MERGE_ONLY]:
        parts.append(f"{uses[PixelUse.MERGE_ONLY]:,} are merged only")
    parts.append(f"{uses[PixelUse.NEVER]:,} are masked")
    return f"{detector.n_pixels:,}: {', '.join(parts)}"


def _rows(evidence: Evidence) -> list[tuple[str, Content]]:
    given, frames, detector = evidence.input, evidence.frames.value, evidence.detector.value
    shape = given.get("frame_shape")
    rows: list[tuple[str, Content]] = [
        ("Frames", number(given.get("frames"))),
        ("Photons per frame", NOT_KNOWN if frames is None else photons_in_words(frames)),
        ("Wavelength", wavelength_in_words(evidence)),
        ("Polarisation", str(given.get("polarisation") or NOT_KNOWN)),
        (
            "Frame as stored",
            " × ".join(map(str, shape)) + " pixels" if isinstance(shape, list) else NOT_KNOWN,
        ),
    ]
    if detector is not None:
        rows += _detector_rows(detector, as_number(given.get("wavelength_A")))
    plan = next((event.get("plan") for event in evidence.events.value or [] if event.get("plan")), None)
    used = at(plan, "n_pixels")
    if isinstance(used, int):
        rows.append(("Pixels that the run used", number(used)))
    rows += [("Format", str(given.get("format") or NOT_KNOWN)), ("File", _file(given))]
    for name, content in (evidence.described.get("files") or {}).items():
        rows.append((f"Content of {name}", joined(["BLAKE2b ", element("code", str(content))])))
    return rows


def _detector_rows(detector: Detector, wavelength_A: float | None) -> list[tuple[str, Content]]:
    panels = f", {counted(len(detector.panels), 'panel')}" if detector.panels else ""
    rows: list[tuple[str, Content]] = [
        (
            "Detector",
            f"{detector.name}{panels}, {with_unit(detector.distance_m * 1e3, 'mm', 4)} from the sample",
        ),
        ("Pixels", pixels_in_words(detector)),
    ]
    if wavelength_A is not None:
        try:
            edge, corner = (
                detector.edge_resolution_A(wavelength_A),
                detector.corner_resolution_A(wavelength_A),
            )
        except OrienteerError:
            return rows
        rows.append(("Reaches to", f"{number(edge)} Å at the edge, {number(corner)} Å in the corner"))
    return rows


def _file(given: dict[str, Any]) -> Markup:
    path, content = given.get("path"), given.get("data")
    where = element("code", str(path)) if path else Markup("none")
    return joined([where, element("br"), "BLAKE2b ", element("code", str(content or NOT_KNOWN))])


def _mean_frame(frames: Frames, detector: Detector | None, looked: str) -> Markup | None:
    """The mean of the frames as an image of the detector."""
    if detector is None or len(frames.mean) != detector.n_pixels:
        return None
    mean = np.where(detector.mask == PixelUse.NEVER, np.nan, frames.mean)
    image = np.asarray(detector.assemble(mean), np.float64)
    step = -(-max(image.shape) // _LARGEST_PICTURE)
    image = image[::step, ::step]
    positive = image[np.isfinite(image) & (image > 0)]
    if image.ndim != 2 or not len(positive):
        return None
    high = float(positive.max())
    low = min(max(float(np.percentile(positive, 1)), high * 1e-6), high / 10)
    colours = Colours("magma", low, high, "photons per pixel", logarithmic=True)
    n_up, n_right = image.shape
    ends = (0.0, float(n_right - 1) * step), (0.0, float(n_up - 1) * step)
    plane = Plane("Mean of the frames", image.T, *ends, "pixels", "pixels")
    words = "The mean of the frames on a logarithmic scale"
    return figure(
        "mean-frame", draw_planes([plane], colours, words), f"Mean of {looked}; grey: masked, or no pixel."
    )
