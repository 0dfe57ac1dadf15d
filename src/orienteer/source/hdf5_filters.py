"""Compression filters of HDF5 files from the field: the plug-ins, and clear words where one is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py

from orienteer.errors import FileError

_NAMES = {
    307: "bzip2",
    32000: "LZF",
    32001: "Blosc",
    32004: "LZ4",
    32008: "bitshuffle",
    32013: "ZFP",
    32015: "Zstandard",
    32026: "Blosc2",
}


def load_filters() -> bool:
    """Register the filters of hdf5plugin; whether it is installed."""
    try:
        import hdf5plugin  # noqa: F401 - importing it registers the filters
    except ImportError:
        return False
    return True


def check_filters(path: Path, dataset: Any) -> None:
    """Refuse a dataset whose compression this machine cannot undo, naming the filter and the remedy."""
    pipeline = dataset.id.get_create_plist()
    for number in range(pipeline.get_nfilters()):
        code, _, _, name = pipeline.get_filter(number)
        if h5py.h5z.filter_avail(code) or (load_filters() and h5py.h5z.filter_avail(code)):
            continue
        called = _NAMES.get(code) or name.decode("utf-8", "replace").partition(";")[0] or "unnamed"
        raise FileError(
            path,
            f"'{dataset.name}' is compressed with {called} (HDF5 filter {code}), which is not installed.",
            "Install it with: pip install 'orienteer[files]'",
        )
