"""Send frames from rank to rank."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.ranks.comm import Comm
from orienteer.source.patterns import FRAME_MASK, Patterns
from orienteer.source.sparse_photons import SparsePhotons


def needed(patterns: Patterns) -> Patterns:
    """The frames with what scoring needs: of all columns, only the masks of single frames."""
    columns = {name: column for name, column in patterns.columns.items() if name == FRAME_MASK}
    return Patterns(patterns.frames, patterns.event_id, columns, patterns.has_event_ids)


def gathered(comm: Comm, own: Patterns) -> Patterns:
    """The frames of all ranks, in the order of the ranks; takes no more memory than the result."""
    if comm.size == 1:
        return own
    return _carried(comm, own, lambda rows, _: comm.rows(rows))


def sent_home(comm: Comm, own: Patterns, home: NDArray[np.int64]) -> Patterns:
    """The frames that belong to this rank, sorted by the rank that had them, and there in their old order.

    home : (n,) the rank to which each frame of this rank belongs.
    """
    if comm.size == 1:
        return own
    return _carried(comm, own, lambda rows, of: comm.exchange(home if of is None else home[of], rows)[1])


def _carried(
    comm: Comm, own: Patterns, carry: Callable[[Any, NDArray[np.int64] | None], Any]
) -> Patterns:  # fmt: skip
    """Frames after each of their arrays was sent between ranks.

    carry : takes rows and returns rows; its second argument is the frame (n,) to which each row belongs, or
        None if each row is one frame.
    """
    own = needed(own)
    frames: Any = own.frames
    types = [np.dtype(each) for each in comm.gather("" if own.is_sparse else frames.dtype.str) if each]
    if types:
        frames = carry(np.asarray(own.dense(), dtype=np.result_type(*types)), None)
    else:
        lengths = np.diff(frames.start)
        of_frame = np.repeat(np.arange(len(own)), lengths)
        start = np.concatenate([[0], np.cumsum(carry(lengths, None))])
        pixel, count = (carry(each, of_frame) for each in (frames.pixel, frames.count))
        frames = SparsePhotons(start, pixel, count, own.n_pixels)
    columns = {name: carry(column, None) for name, column in own.columns.items()}
    return Patterns(frames, carry(own.event_id, None), columns, own.has_event_ids)
