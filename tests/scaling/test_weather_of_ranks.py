"""The weather of real ranks, one of which is slow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orienteer.scaling.findings import find
from orienteer.scaling.weather import Weather

SCRIPT = Path(__file__).with_name("slow_rank_script.py")


BY_POSES = pytest.mark.slow(reason="ranks that share out frames are tried every time")


@pytest.mark.parametrize(
    ("mesh", "balance"),
    [
        ("1x2", "static"),
        pytest.param("2x1", "dynamic", marks=BY_POSES),
        pytest.param("2x1", "static", marks=BY_POSES),
    ],
)
def test_the_slow_one_of_two_ranks_is_found(
    run_ranks: Callable[..., str], tmp_path: Path, mesh: str, balance: str
) -> None:
    run_ranks(2, SCRIPT, str(tmp_path), mesh, balance)
    weather = Weather.read(tmp_path)
    assert [rank.rank for rank in weather.ranks] == [0, 1]
    assert weather.relative_rate[1] < 0.6 * weather.relative_rate[0]
    assert [finding.ranks for finding in find(weather) if finding.kind == "slow rank"] == [(1,)]
    # The quick one waits for it, unless it takes over its work.
    if balance == "static":
        assert weather.shares["wait"][0] > weather.shares["wait"][1]
