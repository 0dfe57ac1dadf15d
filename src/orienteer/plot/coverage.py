"""The directions of the beam in the particle's own coordinates, on an equal-area map."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import compose, inverse, rotate
from orienteer.plot.curves import say_instead

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

FRAMES_PER_CELL = 20  # then chance alone changes the value of a cell by about a fifth
FEWEST_BANDS, MOST_BANDS = 4, 36
COLOURS = "viridis"


def viewing_directions(quaternions: ArrayLike, group: PointGroup | str = "C1") -> NDArray[np.float64]:
    """The direction of the beam in the particle's coordinates, R^T z, once per symmetry-equivalent pose.

    quaternions : (N, 4) orientations, scalar first; they turn the particle.
    Returns (N * order, 3) unit vectors.

    >>> viewing_directions([[1, 0, 0, 0]])
    array([[0., 0., 1.]])
    """
    turns = as_point_group(group).quaternions
    turned = compose(np.asarray(quaternions, np.float64)[:, None], turns).reshape(-1, 4)
    return np.asarray(rotate(inverse(turned), np.array([0.0, 0.0, 1.0])))


def direction_density(directions: NDArray[np.float64], n_bands: int) -> NDArray[np.float64]:
    """How often each part of the sphere was seen, relative to even coverage (1 everywhere).

    directions : (N, 3) unit vectors.
    Returns (n_bands, 2 * n_bands): bands of equal area from the south pole to the north pole, cells of equal
    area along each from longitude -180 to 180 degrees.
    """
    height = np.clip(directions[:, 2], -1, 1)
    longitude = np.arctan2(directions[:, 1], directions[:, 0])
    counts, _, _ = np.histogram2d(
        height, longitude, bins=(n_bands, 2 * n_bands), range=((-1, 1), (-np.pi, np.pi))
    )
    return np.asarray(counts / max(counts.mean(), np.finfo(float).tiny))


def bands_for(n_frames: int) -> int:
    """Number of bands of the map for this many directions, so that a cell holds enough of them."""
    return int(np.clip(np.sqrt(n_frames / (2 * FRAMES_PER_CELL)), FEWEST_BANDS, MOST_BANDS))


def draw_coverage(
    figure: "Figure | SubFigure", place: Any, quaternions: ArrayLike, group: PointGroup | str = "C1"
) -> None:
    """Draw the map of viewing directions at a place (subplot specification) of a figure."""
    axes = figure.add_subplot(place, projection="mollweide")
    axes.set_title("directions of the beam in the particle", fontsize=10)
    directions = viewing_directions(quaternions, group)
    directions = directions[np.isfinite(directions).all(axis=1)]
    if not len(directions):
        say_instead(axes, "nothing yet")
        return
    n_bands = bands_for(len(directions))
    density = direction_density(directions, n_bands)
    shown = axes.pcolormesh(
        np.linspace(-np.pi, np.pi, 2 * n_bands + 1),
        np.arcsin(np.linspace(-1, 1, n_bands + 1)),
        density,
        cmap=COLOURS,
        vmin=0,
        vmax=max(2.0, float(np.percentile(density, 99))),
        rasterized=True,
    )
    axes.set_xticks(np.radians([-120, -60, 0, 60, 120]), [])
    axes.set_yticks(np.radians([-60, -30, 0, 30, 60]))
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    figure.colorbar(shown, ax=axes, shrink=0.6, label="frames (1: even)")
