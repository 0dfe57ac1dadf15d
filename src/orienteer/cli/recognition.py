"""Recognise what a file holds, so that one command can take several kinds of file."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from orienteer.compute.reading import read_head
from orienteer.errors import OrienteerError
from orienteer.source.journal import is_live_run

Kind: TypeAlias = Literal["patterns", "volume", "structure", "detector"]


def kind_of(path: Path) -> Kind:
    """The kind of a file by its content; for an unknown kind, the error says what was tried."""
    if is_live_run(path):
        return "patterns"  # its hits
    read_head(path, "file")
    for kind, recognises in _RECOGNISERS.items():
        if recognises(path):
            return kind
    from orienteer.source.opening import recognise

    recognise(path)  # raises an error that says why nothing fits, unless patterns were written meanwhile
    return "patterns"


def _holds_patterns(path: Path) -> bool:
    from orienteer.source.opening import recognise

    return _succeeds(lambda: recognise(path))


def _holds_volume(path: Path) -> bool:
    from orienteer.volume.opening import recognise_volume

    return _succeeds(lambda: recognise_volume(path))


def _holds_structure(path: Path) -> bool:
    from orienteer.particle.structure_file import recognise_structure

    return _succeeds(lambda: recognise_structure(path))


def _holds_detector(path: Path) -> bool:
    from orienteer.detector.opening import recognise_detector

    return _succeeds(lambda: recognise_detector(path))


_RECOGNISERS: dict[Kind, Callable[[Path], bool]] = {
    "patterns": _holds_patterns,
    "volume": _holds_volume,
    "structure": _holds_structure,
    "detector": _holds_detector,
}


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OrienteerError:
        return False
    return True
