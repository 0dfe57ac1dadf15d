"""Assembly: the detector as one picture, seen against the beam."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import PixelList

LARGEST_N_CELLS = 1 << 25


@dataclass(frozen=True, eq=False)
class Assembly:
    """Which stored pixel lies in each cell of a regular picture of the detector.

    The geometry is projected along the beam.  Row iy and column ix of the picture lie at ``y_m[iy]`` and
    ``x_m[ix]``, both ascending: drawn with the origin at the lower left, y points up and x to the right,
    which is the view against the beam.  Where projected panels overlap, the later panel is seen.

    pixel : (ny, nx) int64 flat index in the stored frame, -1 where there is no pixel.
    x_m : (nx,) centres of the columns.
    y_m : (ny,) centres of the rows.
    cell_m : edge of a cell: the smallest pixel step, or more if the picture would exceed 2^25 cells.
    """

    pixel: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    cell_m: float

    @property
    def extent_m(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top edge of the picture, as matplotlib's ``extent``."""
        half = self.cell_m / 2
        return (
            float(self.x_m[0]) - half,
            float(self.x_m[-1]) + half,
            float(self.y_m[0]) - half,
            float(self.y_m[-1]) + half,
        )


def assemble_panels(panels: tuple[Panel, ...]) -> Assembly:
    """The picture of flat panels: the pixel that holds the centre of each cell."""
    corners = np.concatenate([panel.corners_m()[:, :2] for panel in panels])
    steps = [np.linalg.norm(step) for panel in panels for step in (panel.fast_m, panel.slow_m)]
    picture = _empty_picture(corners.min(axis=0), corners.max(axis=0), float(min(steps)))
    for panel in panels:
        _draw_panel(picture, panel)
    return picture


def assemble_pixels(pixels: PixelList) -> Assembly:
    """The picture of a list of pixels: the nearest pixel within 3/4 of a cell of each cell's centre."""
    from scipy.spatial import KDTree

    areas = np.linalg.norm(pixels.area_vectors_m2, axis=1)
    real = np.flatnonzero(areas > 0)
    if not len(real):
        return _empty_picture(np.zeros(2), np.zeros(2), 1.0)
    centres = pixels.positions_m[real, :2]
    cell = float(np.sqrt(np.median(areas[real])))
    picture = _empty_picture(centres.min(axis=0) - cell / 2, centres.max(axis=0) + cell / 2, cell)
    cells = np.stack(np.meshgrid(picture.x_m, picture.y_m), axis=-1).reshape(-1, 2)
    distance, nearest = KDTree(centres).query(cells, distance_upper_bound=0.75 * picture.cell_m)
    found = np.isfinite(distance)
    picture.pixel.reshape(-1)[found] = real[nearest[found]]
    return picture


def _empty_picture(low: NDArray[np.float64], high: NDArray[np.float64], cell_m: float) -> Assembly:
    size = np.maximum(high - low, cell_m)
    # Coarser cells if the whole area, or one edge alone, would need more than LARGEST_N_CELLS.
    cell_m = max(cell_m, float(np.sqrt(size.prod() / LARGEST_N_CELLS)), float(size.max()) / LARGEST_N_CELLS)
    # Rounding must not add a cell to a width that is a whole number of cells.
    nx, ny = (max(1, int(np.ceil(width / cell_m - 1e-6))) for width in size)
    middle = (low + high) / 2
    x_m = middle[0] + (np.arange(nx) - (nx - 1) / 2) * cell_m
    y_m = middle[1] + (np.arange(ny) - (ny - 1) / 2) * cell_m
    return Assembly(np.full((ny, nx), -1, dtype=np.int64), x_m, y_m, cell_m)


def _draw_panel(picture: Assembly, panel: Panel) -> None:
    steps = np.stack([panel.slow_m[:2], panel.fast_m[:2]], axis=1)
    if abs(np.linalg.det(steps)) < 1e-6 * np.linalg.norm(panel.fast_m) * np.linalg.norm(panel.slow_m):
        return  # the panel is seen edge-on and covers no cell
    corners = panel.corners_m()[:, :2]
    (left, bottom), (right, top) = corners.min(axis=0), corners.max(axis=0)
    rows = slice(*np.searchsorted(picture.y_m, [bottom, top]))
    columns = slice(*np.searchsorted(picture.x_m, [left, right]))
    inverse = np.linalg.inv(steps)
    dx = picture.x_m[columns] - panel.origin_m[0]
    dy = (picture.y_m[rows] - panel.origin_m[1])[:, None]
    slow = np.floor(inverse[0, 0] * dx + inverse[0, 1] * dy).astype(np.int64)
    fast = np.floor(inverse[1, 0] * dx + inverse[1, 1] * dy).astype(np.int64)
    inside = (slow >= 0) & (slow < panel.shape[0]) & (fast >= 0) & (fast < panel.shape[1])
    index = panel.first_pixel + slow * panel.slow_stride + fast * panel.fast_stride
    part = picture.pixel[rows, columns]
    part[inside] = index[inside]
