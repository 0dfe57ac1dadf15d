"""Given orientations: read by event id, used without a search, and mentioned in every result.

This is the only place where a reconstruction may take orientations from anything but the frames, and it does
so only if a setting names their file or column.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import FileError, SettingsError
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.base import Source
from orienteer.source.patterns import checked_event_ids

# How far the length of a quaternion may be from 1.
_LENGTH_ERROR = 1e-3
# A run whose orientations were all given says so in a remark that begins with these words.
GIVEN_ALL = "The orientations of all"


@dataclass(frozen=True, eq=False)
class KnownOrientations:
    """Orientations of N frames that are not searched for.

    quaternion : (N, 4) unit quaternions, scalar first; NaN where nothing is known.
    origin : where they come from, in words.
    """

    quaternion: NDArray[np.float64]
    origin: str

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """(N,) whether each frame has one."""
        return np.isfinite(self.quaternion[:, 0])

    @property
    def are_all(self) -> bool:
        """Whether there is nothing to search for."""
        return bool(self.is_known.all())

    @property
    def words(self) -> str:
        """The sentence with which every result from given orientations must begin."""
        n, known = len(self.quaternion), int(self.is_known.sum())
        frames = f"{GIVEN_ALL} {counted(n, 'frame')}"
        if known < n:
            frames = f"The orientations of {known:,} of {counted(n, 'frame')}"
        return (
            f"{frames} were given, not found: {self.origin}. "
            "The poses of sentinels, from which no model learns, are searched for all the same."
        )


def given_orientations(
    settings: EmcSettings, source: Source, event_id: NDArray[np.uint64], *, may_be_none: bool = False
) -> KnownOrientations | None:
    """The orientations that the settings name, for frames with these event ids (N,); None: none are named.

    may_be_none : whether it is no error if none of the frames has one.
    """
    file, column = settings.known_orientations_file, settings.known_orientations_column
    if file and column:
        raise SettingsError(
            "known orientations are named twice, by a file and by a column.", "Give one of the two."
        )
    if file:
        found = _from_file(Path(file), event_id)
        origin = f"known_orientations_file = {file}"
    elif column:
        found = _from_column(source, column)
        origin = f"known_orientations_column = {column}"
    else:
        return None
    known = np.asarray(np.isfinite(found).all(axis=1), dtype=bool)
    length = np.linalg.norm(found[known], axis=1)
    if (np.abs(length - 1) > _LENGTH_ERROR).any():
        raise SettingsError(
            f"{origin}: some known orientations are not unit quaternions (the length of one is "
            f"{length[np.abs(length - 1).argmax()]:.3g}).",
            "Give w, x, y, z of the rotation that turns the particle.",
        )
    if may_be_none and not known.any():
        return None
    if not known.any():
        raise SettingsError(
            f"{origin}: none of the {counted(len(known), 'frame')} has an orientation there.",
            "Check that they belong to these frames: the two are matched by event id.",
        )
    whole = np.full((len(known), 4), np.nan)
    whole[known] = found[known] / length[:, None]
    return KnownOrientations(whole, origin)


def _from_file(path: Path, event_id: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Orientations (N, 4) of the events from an HDF5 file with ``event_id`` and ``quaternion``."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array

    with open_hdf5(path, "table of orientations") as file:
        own = checked_event_ids(read_array(get_dataset(file, "event_id", "iu", (None,))))
        quaternion = read_array(get_dataset(file, "quaternion", "f", (len(own), 4))).astype(np.float64)
    if len(np.unique(own)) < len(own):
        raise FileError(path, "names some event ids twice.", "Give one orientation for each event.")
    order = np.argsort(own)
    place = np.minimum(np.searchsorted(own[order], event_id), max(len(own) - 1, 0))
    found = np.full((len(event_id), 4), np.nan)
    if len(own):
        is_there = own[order][place] == event_id
        found[is_there] = quaternion[order][place][is_there]
    return found


def _from_column(source: Source, name: str) -> NDArray[np.float64]:
    """Orientations (N, 4) of all frames from a column of the data."""
    if name not in source.column_names:
        there = ", ".join(sorted(source.column_names)) or "none"
        raise SettingsError(f"the data have no column '{name}'.", f"Their columns: {there}.")
    found = np.asarray(source.read_columns([name])[name], dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != 4:
        raise SettingsError(
            f"the column '{name}' has the shape {found.shape} and holds no quaternions.",
            "Name one with w, x, y, z of each frame, such as truth_orientation of simulated data.",
        )
    return found
