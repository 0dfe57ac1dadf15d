"""Write a figure to a file, completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orienteer.compute.atomic import atomic_path
from orienteer.errors import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_picture(figure: Figure, path: Path, formats: tuple[str, ...] = ("png",)) -> Path:
    """Write a figure, completely or not at all; only to a name that ends like a picture.

    formats : the endings that the name may have.
    """
    refuse_no_picture(path, formats)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lower().removeprefix("."))
    return path


def refuse_no_picture(path: Path, formats: tuple[str, ...] = ("png",)) -> None:
    """Refuse a name that does not end like a picture, before any long work."""
    endings = [f".{each}" for each in formats]
    if path.suffix.lower() not in endings:
        known = " or ".join(endings)
        raise FileError(
            path, f"does not end in {known}, the format of pictures.", f"Give a name that ends in {known}."
        )
