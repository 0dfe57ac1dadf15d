"""show: draw anything that has a picture."""

from typing import TYPE_CHECKING, Any

from orienteer.compare.comparison import Comparison
from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.phase.result import Phasing
from orienteer.plot.density import plot_density
from orienteer.plot.detector import plot_detector
from orienteer.plot.fsc import plot_comparison, plot_validation
from orienteer.plot.patterns import plot_summary
from orienteer.plot.run import plot_run
from orienteer.plot.volume import plot_volume
from orienteer.plot.words import plain_text
from orienteer.run.run import Run
from orienteer.source.base import Source
from orienteer.source.summary import blocks_to_look_at, summarise
from orienteer.validate.result import Validation
from orienteer.volume.volume import Volume

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Frames of a long data set that are read, spread evenly.
_FRAMES = 1000


def show(thing: Any, title: str = "", *, wavelength_A: float | None = None) -> "Figure":
    """The picture of a detector, a source, a volume, a run, a phasing, a validation or a comparison.

    A notebook shows the returned figure; its ``savefig`` writes it to a file.  ``thing.show()`` is the same.

    title : above the picture; by default the name of the thing.
    wavelength_A : for the resolutions of a detector or a source; by default that of the data.

    >>> import orienteer
    >>> detector = orienteer.square_detector(64, pixel_size_m=0.001, distance_m=0.2)
    >>> figure = orienteer.show(detector, wavelength_A=2.0)
    >>> figure.get_suptitle()
    'square: 64 × 64 pixels at 0.2 m\\nedge 12.6 Å, corner 9.14 Å at a wavelength of 2 Å'
    """
    if isinstance(thing, Volume):
        return plot_volume(thing, title or thing.name)
    if isinstance(thing, Phasing):
        return plot_density(thing, title)
    if isinstance(thing, Run):
        return _show_run(thing, title or str(thing.path))
    if isinstance(thing, Detector):
        figure = plot_detector(thing, wavelength_A)
    elif isinstance(thing, Comparison):
        figure = plot_comparison(thing)
    elif isinstance(thing, Validation):
        figure = plot_validation(thing)
    elif isinstance(thing, Source):
        blocks = blocks_to_look_at(len(thing), _FRAMES)
        figure = plot_summary(summarise(thing, map(thing.read, blocks), wavelength_A))
    else:
        raise OrienteerError(
            f"there is no picture of {type(thing).__name__}.",
            "Give a detector, a source, a volume, a run, a phasing, a validation or a comparison.",
        )
    if title:
        figure.suptitle(plain_text(title))
    return figure


def _show_run(run: Run, title: str) -> "Figure":
    has_results = run.has_results
    return plot_run(
        run.volumes() if has_results else (),
        run.steps,
        run.orientations() if has_results else {},
        title,
        run.group.name,
    )
