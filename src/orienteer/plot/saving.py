"""save_picture: a figure as a file, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orienteer.compute.atomic import atomic_path
from orienteer.errors import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_picture(figure: Figure, path: Path, formats: tuple[str, ...] = ("png",)) -> Path:
    """Write a figure, whole or not at all, and never over something that is no picture.

    formats : the endings that the name may have.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in formats:
        endings = " or ".join(f".{each}" for each in formats)
        raise FileError(
            path,
            f"does not end in {endings}, which is what is drawn.",
            f"Give a name that ends in {endings}.",
        )
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=ending)
    return path
