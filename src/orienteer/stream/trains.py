"""Trains of pulses of the European XFEL: ids of events, and modules of a detector by number."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

# Sources of one module: .../DET/7CH0:xtdf of AGIPD, LPD and DSSC, .../DET/JNGFR03:daqOutput of JUNGFRAU.
_MODULE = re.compile(r"(?P<detector>.+)/DET/(?:(?P<number>\d+)CH0|[A-Z]+(?P<other>\d+)):")
PULSE_BITS = 16


def train_event_id(train_id: NDArray[np.uint64], pulse_id: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The id of an event: train * 2^16 + pulse, as for CXI files.

    >>> train_event_id(np.array([3], np.uint64), np.array([7], np.uint64))
    array([196615], dtype=uint64)
    """
    return (np.asarray(train_id, np.uint64) << np.uint64(PULSE_BITS)) + np.asarray(pulse_id, np.uint64)


def value_of_pulse(values: NDArray[np.float64], number: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N,) the value of pulse ``number`` (from 0) of a train; NaN beyond the end of the list.

    >>> value_of_pulse(np.array([0.5, 0.25]), np.array([1, 2]))
    array([0.25,  nan])
    """
    return np.append(values, np.nan)[np.minimum(number, len(values))]


def module_of(source: str) -> tuple[str, int] | None:
    """The detector and module number of a source that is a module; None for any other source.

    >>> module_of("SPB_DET_AGIPD1M-1/DET/7CH0:xtdf")
    ('SPB_DET_AGIPD1M-1', 7)
    >>> module_of("SPB_IRDA_JF4M/DET/JNGFR03:daqOutput")
    ('SPB_IRDA_JF4M', 3)
    """
    found = _MODULE.match(source)
    if found is None:
        return None
    return found["detector"], int(found["number"] or found["other"])
