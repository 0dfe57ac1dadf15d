"""The table of shots as files."""

import csv

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.hits.shot_table import write_shot_table

COLUMNS = {
    "event_id": np.array([7, 2**63 + 1], np.uint64),
    "is_hit": np.array([True, False]),
    "size_A": np.array([412.1, np.nan], np.float32),
    "offset_m": np.array([[0.5, 1], [2, 3]]),
    "name": np.array(["a", "ü"]),
}


def test_text_has_a_row_for_every_shot(tmp_path):
    write_shot_table(tmp_path / "shots.csv", COLUMNS)
    with (tmp_path / "shots.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["event_id", "is_hit", "size_A", "offset_m_0", "offset_m_1", "name"],
            ["7", "1", "412.1", "0.5", "1.0", "a"],
            ["9223372036854775809", "0", "", "2.0", "3.0", "ü"],
        ]


def test_arrays_come_back_as_they_were(tmp_path):
    write_shot_table(tmp_path / "shots.h5", COLUMNS)
    write_shot_table(tmp_path / "shots.npz", COLUMNS)
    with h5py.File(tmp_path / "shots.h5") as stored:
        found = {name: stored[name][()] for name in stored}
    with np.load(tmp_path / "shots.npz") as stored:
        packed = dict(stored)
    for name in ("event_id", "is_hit", "size_A", "offset_m"):
        np.testing.assert_array_equal(found[name], COLUMNS[name])
        np.testing.assert_array_equal(packed[name], COLUMNS[name])
    assert found["name"][1].decode("utf-8") == "ü"


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(FileError, match="not a known table format"):
        write_shot_table(tmp_path / "shots.xlsx", COLUMNS)
    assert not list(tmp_path.iterdir())
