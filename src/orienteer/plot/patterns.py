"""One picture of a data set: sum of the frames, a few frames, radial profile, photons per frame."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.detector.masks import PixelUse
from orienteer.plot.curves import say_instead
from orienteer.plot.words import plain_text
from orienteer.source.base import Source
from orienteer.source.summary import Summary, radial_profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_EXAMPLES = 4
COLOURS = "magma"
MASKED = "0.35"
NO_PLACES = "no geometry: give --geometry FILE"


def plot_summary(summary: Summary) -> "Figure":
    """The picture of a data set that ``orienteer inspect`` draws."""
    from matplotlib.figure import Figure

    source = summary.source
    figure = Figure(figsize=(13, 7.6), layout="constrained", dpi=110)
    name = plain_text(source.path.name) if source.path else "in memory"
    figure.suptitle(
        f"{name}    {counted(len(source), 'frame')} of {' x '.join(map(str, source.frame_shape))} pixels",
        fontsize=12,
    )
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    top, bottom = halves
    total_axes, profile_axes, photons_axes = top.subplots(1, 3, width_ratios=[1, 1.15, 1])
    mean = summary.total / max(len(summary.photons), 1)
    _draw_frame(total_axes, mean, source, "mean of the frames")
    _draw_profile(profile_axes, summary)
    _draw_photons(photons_axes, summary)
    _draw_examples(bottom, summary)
    return figure


def as_image(frames: NDArray[Any], source: Source) -> NDArray[Any]:
    """Frames (..., P) as images (..., ny, nx), assembled by the detector or as stored; masked is NaN."""
    mask = source.mask if source.detector is None else source.detector.mask
    if mask is not None:
        frames = np.where(mask == PixelUse.NEVER, np.nan, frames)
    if source.detector is not None:
        return np.asarray(source.detector.assemble(frames))
    shape = source.frame_shape
    rows = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
    return frames.reshape(*frames.shape[:-1], rows, shape[-1])


def _draw_frame(axes: "Axes", frame: NDArray[Any], source: Source, title: str) -> None:
    """Draw a frame (P,); write words instead if the places of its pixels are not known."""
    if source.detector is None and len(source.frame_shape) == 1:
        axes.set_title(title, fontsize=10)
        say_instead(axes, NO_PLACES)
        return
    _draw_image(axes, as_image(frame, source), title)


def _draw_image(axes: "Axes", image: NDArray[Any], title: str) -> None:
    """A log-scaled image with its colour bar; masked pixels grey."""
    import matplotlib
    from matplotlib.colors import LogNorm

    colours = matplotlib.colormaps[COLOURS].with_extremes(bad=MASKED)
    positive = image[np.isfinite(image) & (image > 0)]
    axes.set_title(title, fontsize=10)
    if not len(positive):
        say_instead(axes, "no photons")
        return
    low, high = np.percentile(positive, [1, 100])
    # Zero has no logarithm: show it in the darkest colour, not as masked, and one photon clearly brighter.
    darkest = max(low, high * 1e-6) / 3
    norm = LogNorm(darkest, max(high, 3 * low))
    shown = axes.imshow(
        np.where(image <= 0, darkest, image),
        origin="lower",
        cmap=colours,
        norm=norm,
        interpolation="nearest",
    )
    axes.figure.colorbar(shown, ax=axes, shrink=0.8, label="photons per pixel")
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_profile(axes: "Axes", summary: Summary) -> None:
    detector = summary.source.detector
    axes.set_title("radial profile of the mean", fontsize=10)
    if detector is None:
        say_instead(axes, NO_PLACES)
        return
    q, mean = radial_profile(summary.total / max(len(summary.photons), 1), detector, summary.wavelength_A)
    seen = np.isfinite(mean) & (mean > 0)
    if not seen.any():
        say_instead(axes, "no photons")
        return
    axes.semilogy(q[seen], mean[seen], color="C3", lw=1.5)
    axes.set_xlabel("q (1/Å)" if summary.wavelength_A else "2 sin θ (no wavelength known)")
    axes.set_ylabel("photons per pixel and frame")
    axes.grid(alpha=0.25)
    if summary.wavelength_A:
        from matplotlib.ticker import MaxNLocator

        axes.set_xlim(0, None)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        resolution = axes.secondary_xaxis("top")
        ticks = [tick for tick in axes.get_xticks() if 0 < tick <= q[-1]]
        resolution.set_xticks(ticks, [f"{1 / tick:.3g} Å" for tick in ticks], fontsize=8)


def _draw_photons(axes: "Axes", summary: Summary) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title("photons per frame", fontsize=10)
    axes.set_xlabel("photons on used pixels")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("frames")
    if not len(summary.photons):
        return
    axes.hist(summary.photons, bins=min(60, max(10, len(summary.photons) // 10)), color="C0", alpha=0.85)
    axes.axvline(
        float(np.median(summary.photons)),
        color="k",
        lw=1,
        ls="--",
        label=f"median {np.median(summary.photons):,.0f}",
    )
    axes.legend(frameon=False, fontsize=9)


def _draw_examples(figure: Any, summary: Summary) -> None:
    examples = summary.examples[: min(N_EXAMPLES, len(summary.examples))]
    if not len(examples):
        return
    frames = np.asarray(examples.dense(), np.float64)
    for number, (axes, frame) in enumerate(zip(figure.subplots(1, N_EXAMPLES), frames, strict=False)):
        photons = summary.photons[number]
        _draw_frame(axes, frame, summary.source, f"frame {number}, {photons:,.0f} photons")
    for axes in figure.axes[len(frames) : N_EXAMPLES]:
        axes.set_axis_off()
