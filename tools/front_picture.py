"""The picture of the README: frames, the intensity found from them, and its density.

    orienteer demo --out demo
    python tools/front_picture.py demo

Draws docs/pictures/frames_to_density.png from a finished demo.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import ndimage

import orienteer

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "frames_to_density.png"
_GROUND, _WORDS = "#10131a", "#d5dbe3"
# Lights: where from (x to the right, y up, z away from the eye) and their colour; then that from everywhere.
_LIGHTS = (((-0.5, 0.6, -0.65), (0.66, 0.64, 0.58)), ((0.75, -0.45, -0.5), (0.22, 0.29, 0.38)))
_AMBIENT = (0.27, 0.31, 0.36)
_SURFACE = (0.93, 0.98, 0.97)


class Surface(NamedTuple):
    """A lit surface, (n, n, 4) with 0 in the last place beside it, and the voxels that a pixel is wide."""

    rgba: NDArray[np.float64]
    voxels_per_pixel: float


def shaded_surface(density: NDArray[np.float32], threshold: float, n: int = 420) -> Surface:
    """The surface at a threshold seen along z, lit from the upper left and, weakly, from the lower right."""
    turn = _rotation(0.5, 0) @ _rotation(0.35, 1)
    centre = np.array(density.shape) // 2
    reach = np.linalg.norm(np.argwhere(density > threshold) - centre, axis=1).max()
    finer = n / (2.2 * reach)  # voxels of the picture across one of the density: the particle fills it
    offset = centre - turn @ np.full(3, n // 2) / finer
    fine = ndimage.affine_transform(density, turn / finer, offset, (n, n, n), order=3)
    inside = fine > threshold
    first = inside.argmax(axis=2)
    x, y = np.indices(first.shape)
    normal = -np.stack([ndimage.gaussian_filter(each, 3)[x, y, first] for each in np.gradient(fine)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
    lit = np.tile(_AMBIENT, (n, n, 1))
    for direction, colour in _LIGHTS:
        towards = np.array(direction) / np.linalg.norm(direction)
        lit += np.clip(normal @ towards, 0, 1)[..., None] * colour
    depth = 1 - 0.3 * first / n  # what is further away is darker
    rgb = np.clip(lit * _SURFACE * depth[..., None], 0, 1)
    # The rim is as smooth as the pixels of the picture allow.
    cover = ndimage.gaussian_filter(inside.any(axis=2).astype(float), 0.8)
    return Surface(np.concatenate([rgb, np.clip(cover, 0, 1)[..., None]], axis=2), 1 / finer)


def _rotation(angle: float, axis: int) -> NDArray[np.float64]:
    turn = np.eye(3)
    i, j = [k for k in range(3) if k != axis]
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
    return turn


def show(axes: Axes, values: NDArray[np.floating], colours: str = "", **options: Any) -> None:
    """An image without frame, x to the right and y up."""
    image = np.swapaxes(values, 0, 1)
    axes.imshow(image, origin="lower", cmap=colours or None, **options)
    axes.set_axis_off()


def scale_bar(axes: Axes, length: float, words: str) -> None:
    """A bar so many pixels long in the lower left corner, and what it stands for."""
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    height = axes.get_ylim()[1] - bottom
    x, y = left + 0.02 * height, bottom + 0.03 * height
    axes.plot([x, x + length], [y, y], color=_WORDS, lw=2, solid_capstyle="butt")
    axes.text(x + length / 2, y + 0.015 * height, words, color=_WORDS, fontsize=9, ha="center", va="bottom")


def spaced(number: float) -> str:
    """Rounded to two digits, with spaces between thousands."""
    return f"{float(f'{number:.2g}'):,.0f}".replace(",", " ")


def main(demo: Path) -> None:
    source = orienteer.open(demo / "frames.h5")
    patterns = source.read(range(40))
    brightest = np.argsort(patterns.photons)[-4:]
    frames = [source.detector.assemble(patterns.dense()[i].astype(np.float64)) for i in brightest]
    intensity = orienteer.open_volume(demo / "run" / "intensity.h5")
    density = orienteer.open_volume(demo / "run" / "density.h5")
    settings = tomllib.loads((demo / "demo.toml").read_text())["emc"]
    of_symmetry = {"I": "icosahedral symmetry given"}[settings["symmetry"]]
    agree_to_A = json.loads((demo / "run" / "validation" / "validation.json").read_text())["resolution_A"]
    photons = np.mean([patterns.photons[i] for i in brightest])

    figure = plt.figure(figsize=(12, 4.6), facecolor=_GROUND)
    parts = figure.subfigures(1, 3, wspace=0)
    titles = (
        ("frames, orientations unknown", f"4 of {spaced(len(source))}, about {spaced(photons)} photons each"),
        ("intensity", f"the middle section; {of_symmetry}"),
        ("density", f"halves of the frames agree to {agree_to_A:.0f} Å"),
    )
    for part, (title, words) in zip(parts, titles, strict=True):
        part.set_facecolor(_GROUND)
        part.subplots_adjust(0.04, 0.03, 0.96, 0.86, wspace=0.03, hspace=0.03)
        part.text(0.5, 0.955, title, color="white", fontsize=13, ha="center", va="center")
        part.text(0.5, 0.9, words, color=_WORDS, fontsize=9.5, ha="center", va="center")
    for axes, frame in zip(parts[0].subplots(2, 2).flat, frames, strict=True):
        # Single photons are to be seen: most pixels have none.
        show(
            axes,
            np.log1p(np.nan_to_num(frame)) ** 0.8,
            "inferno",
            interpolation="nearest",
            vmin=-0.18,
            vmax=2.6,
        )
    values = intensity.values
    middle = values[:, :, values.shape[2] // 2]
    axes = parts[1].subplots()
    logarithm = np.log(np.clip(middle, np.nanmax(middle) * 1e-5, None))
    show(axes, logarithm, "inferno", interpolation="bicubic")
    scale_bar(axes, 0.01 / intensity.voxel_size[0], "1/(100 Å)")
    surface = shaded_surface(np.asarray(density.values / density.values.max(), dtype=np.float32), 0.35)
    axes = parts[2].subplots()
    show(axes, surface.rgba, interpolation="bilinear")
    scale_bar(axes, 100 / density.voxel_size[0] / surface.voxels_per_pixel, "100 Å")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110, facecolor=_GROUND)
    print(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
