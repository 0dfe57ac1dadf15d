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
from orienteer.report.plain_values import as_count, as_number, as_numbers, at
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


def used_wavelength_A(evidence: Evidence) -> float | None:
    """The wavelength at which all frames were taken; None if the folder of the run does not say."""
    used = as_number(at(evidence.input, "wavelengths", "used_A"))
    return as_number(evidence.input.get("wavelength_A")) if used is None else used


def wavelength_in_words(evidence: Evidence) -> str:
    """The wavelength at which all frames were taken, and the photon energy."""
    used_A = used_wavelength_A(evidence)
    if used_A is None:
        # Older runs do not say which of several they used.
        is_one = not isinstance(evidence.input.get("wavelength_A"), str)
        return NOT_KNOWN if is_one else "not the same for all frames"
    return f"{number(used_A, 4)} Å ({number(KEV_A / used_A, 4)} keV)"


def wavelengths_in_words(evidence: Evidence) -> str:
    """The wavelength at which all frames were taken, and those of the frames where they differ."""
    told = evidence.input.get("wavelengths")
    ends, mean_A = as_numbers(at(told, "range_A")), as_number(at(told, "mean_A"))
    parts = [wavelength_in_words(evidence)]
    if len(ends) == 2 and ends[0] != ends[1]:
        low, high = (number(end, 4) for end in ends)
        parts.append(
            f"used for all frames, whose own are {low} to {high} Å, {number(mean_A, 4)} Å on average"
        )
    if n_without := as_count(at(told, "frames_without")):
        parts.append(f"{counted(n_without, 'frame')} without a wavelength of their own")
    return "; ".join(parts)


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
        ("Wavelength", wavelengths_in_words(evidence)),
        ("Polarisation", str(given.get("polarisation") or NOT_KNOWN)),
        (
            "Frame as stored",
            " × ".join(map(str, shape)) + " pixels" if isinstance(shape, list) else NOT_KNOWN,
        ),
    ]
    if detector is not None:
        rows += _detector_rows(detector, used_wavelength_A(evidence))
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
