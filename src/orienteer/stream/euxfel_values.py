"""Small data of a run of the European XFEL: a number for each train, or for each pulse of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orienteer.stream.euxfel_files import RunFiles
from orienteer.stream.trains import value_of_pulse


class TrainValues:
    """The values of a key of a source, named as EXtra-data names it, in CONTROL or in INSTRUMENT.

    Control data have one value per train.  Instrument data have one, or a list with one per pulse, which may
    be longer than the number of frames.
    """

    def __init__(self, files: RunFiles, source: str, key: str) -> None:
        self._files = files
        path = key.removesuffix(".value").replace(".", "/")
        root, _, rest = path.partition("/")
        self._places = (
            (source, f"CONTROL/{source}/{path}/value"),
            (f"{source}/{root}", f"INSTRUMENT/{source}/{root}/{rest}"),
        )

    def of_pulses(self, train_id: NDArray[np.uint64], number: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N,) the value of pulse ``number`` (from 0) of each train; NaN if there is none."""
        values = np.full(len(train_id), np.nan)
        for train in np.unique(train_id).tolist():
            at = np.flatnonzero(train_id == np.uint64(train))
            of_train = self._of_train(train)
            if len(of_train) == 1:
                values[at] = of_train[0]
            else:
                values[at] = value_of_pulse(of_train, number[at])
        return values

    def _of_train(self, train: int) -> NDArray[np.float64]:
        for index, place in self._places:
            rows = self._files.sources.get(index)
            found = None if rows is None else rows.of(train)
            if found is not None and self._files.shape(found[0], place) is not None:
                return self._files.read(found[0], place, found[1]).reshape(-1).astype(np.float64)
        return np.empty(0)
