"""The picture of the README: frames, the intensity found from them, and its density.

    orienteer demo --out demo
    python tools/front_picture.py demo

Draws docs/pictures/frames_to_density.png from a finished demo.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import ndimage

import orienteer

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "frames_to_density.png"
_GROUND = "#10131a"


def shaded_surface(density: NDArray[np.float32], threshold: float, n: int = 300) -> NDArray[np.float64]:
    """The surface at a threshold seen along z and lit from the upper left, (n, n); NaN beside it."""
    turn = _rotation(0.5, 0) @ _rotation(0.35, 1)
    centre = np.array(density.shape) // 2
    reach = np.linalg.norm(np.argwhere(density > threshold) - centre, axis=1).max()
    finer = n / (2.2 * reach)  # voxels of the picture across one of the density: the particle fills it
    offset = centre - turn @ np.full(3, n // 2) / finer
    fine = ndimage.affine_transform(density, turn / finer, offset, (n, n, n), order=3)
    inside = fine > threshold
    first = inside.argmax(axis=2)
    x, y = np.indices(first.shape)
    normal = -np.stack([ndimage.gaussian_filter(each, 2)[x, y, first] for each in np.gradient(fine)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
    light = np.array([-0.5, 0.6, -0.65])
    bright = 0.3 + 0.7 * np.clip(normal @ (light / np.linalg.norm(light)), 0, 1)
    depth = 1 - 0.35 * first / n  # what is further away is darker
    return np.where(inside.any(axis=2), bright * depth, np.nan)


def _rotation(angle: float, axis: int) -> NDArray[np.float64]:
    turn = np.eye(3)
    i, j = [k for k in range(3) if k != axis]
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
    return turn


def show(axes: Axes, values: NDArray[np.floating], colours: str, smooth: str = "nearest") -> None:
    """An image without frame, x to the right and y up."""
    axes.imshow(values.T, origin="lower", cmap=colours, interpolation=smooth)
    axes.set_axis_off()


def main(demo: Path) -> None:
    source = orienteer.open(demo / "frames.h5")
    patterns = source.read(range(40))
    brightest = np.argsort(patterns.photons)[-4:]
    frames = [source.detector.assemble(patterns.dense()[i].astype(np.float64)) for i in brightest]
    intensity = orienteer.open_volume(demo / "run" / "intensity.h5").values
    density = orienteer.open_volume(demo / "run" / "density.h5").values

    figure = plt.figure(figsize=(12, 4.4), facecolor=_GROUND)
    parts = figure.subfigures(1, 3, wspace=0)
    for part, title in zip(parts, ("frames, orientations unknown", "intensity", "density"), strict=True):
        part.set_facecolor(_GROUND)
        part.subplots_adjust(0.04, 0.04, 0.96, 0.88, wspace=0.03, hspace=0.03)
        part.suptitle(title, color="white", fontsize=12)
    for axes, frame in zip(parts[0].subplots(2, 2).flat, frames, strict=True):
        show(axes, np.log1p(np.nan_to_num(frame)), "inferno")
    middle = intensity[:, :, intensity.shape[2] // 2]
    show(parts[1].subplots(), np.log(np.clip(middle, np.nanmax(middle) * 1e-5, None)), "inferno", "bicubic")
    surface = shaded_surface(np.asarray(density / density.max(), dtype=np.float32), 0.35)
    axes = parts[2].subplots()
    show(axes, surface, "bone", "bilinear")
    axes.images[0].set_clim(0, 1)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=100, facecolor=_GROUND)
    print(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
