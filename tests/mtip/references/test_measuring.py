"""Rates of the machine at hand are those of the work that was given."""

import time
from pathlib import Path

import numpy as np

from orienteer.mtip.references.measuring import measure_rates
from orienteer.mtip.references.tiling import Tiling


def test_alone_there_is_no_network_and_everything_else_takes_its_time(tmp_path: Path) -> None:
    tiling = Tiling.even(1000, 100, 500)

    def make(tile: int) -> np.ndarray:
        time.sleep(0.02)
        return np.zeros(tiling.shape(tile), dtype=np.float32)

    rates = measure_rates(make, tiling, 0.5, folder=tmp_path)
    assert rates.make >= 0.02
    assert rates.score == 0.5
    assert 0 < rates.memory == rates.near < 0.02
    assert 0 < rates.disk < float("inf")
    assert rates.network == float("inf")
    assert not list(tmp_path.iterdir())


def test_where_no_file_can_be_written_a_disk_takes_for_ever(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    tiling = Tiling.even(10, 10, 5)
    rates = measure_rates(
        lambda tile: np.zeros(tiling.shape(tile), dtype=np.float32), tiling, 0.5, folder=blocked
    )
    assert rates.disk == float("inf")
