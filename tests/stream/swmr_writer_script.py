"""A facility that writes a CXI file in HDF5's mode of a single writer and many readers: PATH N_FRAMES."""

import os
import sys

import h5py
import numpy as np

FRAMES, IDS, ENERGY = "entry_1/instrument_1/detector_1/data", "entry_1/event_id", "entry_1/pulse_energy"
STEP = 5

path, n_frames = sys.argv[1], int(sys.argv[2])
with h5py.File(f"{path}.part", "w", libver="latest") as file:
    packed = {"chunks": (4, 16, 16), "compression": "gzip", "compression_opts": 1}
    file.create_dataset(FRAMES, (0, 16, 16), np.uint16, maxshape=(None, 16, 16), **packed)
    for place, dtype in ((IDS, np.uint64), (ENERGY, np.float64)):
        file.create_dataset(place, (0,), dtype, maxshape=(None,), chunks=(16,))
    file.swmr_mode = True
    os.rename(f"{path}.part", path)
    for first in range(0, n_frames, STEP):
        ids = np.arange(first, first + STEP)
        frames = np.broadcast_to(ids[:, None, None], (STEP, 16, 16))
        for place, values in ((FRAMES, frames), (IDS, ids), (ENERGY, 0.5 * ids)):
            file[place].resize(first + STEP, axis=0)
            file[place][first:] = values
            file[place].flush()
