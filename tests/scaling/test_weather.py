"""The weather of a run: what logs of stages tell."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.scaling.findings import find, in_words
from orienteer.scaling.stage_lines import nested, read_stage_lines
from orienteer.scaling.weather import NOTHING, STAGES, Weather


def kinds(weather: Weather) -> list[str]:
    return [finding.kind for finding in find(weather)]


def test_fair_weather_has_nothing_to_tell(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path)
    weather = Weather.read(tmp_path)
    assert kinds(weather) == []
    assert in_words(find(weather))[0].startswith("Fair weather")
    assert np.abs(weather.relative_rate - 1).max() < 0.1


def test_a_slow_rank_is_named_with_its_host_and_rate(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, slow={5: 3.0})
    weather = Weather.read(tmp_path)
    slow = [finding for finding in find(weather) if finding.kind == "slow rank"]
    assert [finding.ranks for finding in slow] == [(5,)]
    assert "Rank 5 on node01" in slow[0].text
    assert weather.relative_rate[5] == pytest.approx(1 / 3, abs=0.03)
    assert "waiting" in kinds(weather)  # the others wait for it


def test_the_slower_of_two_ranks_is_found(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, n_ranks=2, slow={1: 2.0})
    assert [f.ranks for f in find(Weather.read(tmp_path)) if f.kind == "slow rank"] == [(1,)]


def test_a_slow_node_is_told_once_and_not_rank_by_rank(
    tmp_path: Path, write_logs: Callable[..., None]
) -> None:
    write_logs(tmp_path, n_ranks=16, slow=dict.fromkeys((4, 5, 6, 7), 2.0))
    slow = [finding for finding in find(Weather.read(tmp_path)) if finding.kind == "slow rank"]
    assert [finding.ranks for finding in slow] == [(4, 5, 6, 7)]
    assert "Node node01" in slow[0].text


def test_a_stall_of_several_ranks_is_one_finding_with_its_time(
    tmp_path: Path, write_logs: Callable[..., None]
) -> None:
    write_logs(tmp_path, stall=(3, 6.0, (0, 1, 6)))
    stalls = [finding for finding in find(Weather.read(tmp_path)) if finding.kind == "stall"]
    assert [(finding.ranks, finding.iteration) for finding in stalls] == [((0, 1, 6), 3)]
    assert stalls[0].lost_s == pytest.approx(18.0)
    assert "3 of 8 ranks stood still for 6 s" in stalls[0].text


def test_frames_that_always_cost_too_much_are_bad_and_a_batch_that_did_once_is_a_pause(
    tmp_path: Path, write_logs: Callable[..., None]
) -> None:
    write_logs(tmp_path, bad=(3, 4, 4.0), pause=(6, 2, 5.0))
    found = {
        f.kind: f for f in find(Weather.read(tmp_path)) if f.kind in ("bad frames", "pause", "slow rank")
    }
    assert set(found) == {"bad frames", "pause"}
    assert found["bad frames"].ranks == (3,)
    assert f"begins with frame {(3 * 6 + 4) * 100}" in found["bad frames"].text
    assert (found["pause"].ranks, found["pause"].iteration) == ((6,), 2)


def test_cells_show_what_ranks_do_and_how_fast(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, n_ranks=4, slow={2: 3.0}, stall=(1, 4.0, (1,)))
    weather = Weather.read(tmp_path)
    what, rate = weather.cells(400)
    assert what.shape == rate.shape == (4, 400)
    assert np.nanmedian(rate[2]) == pytest.approx(1 / 3, abs=0.05)
    assert np.nanmedian(rate[0]) == pytest.approx(1.0, abs=0.05)
    width = weather.seconds / 400
    assert (what[1] == STAGES.index("read")).sum() * width == pytest.approx(4.0, abs=3 * width)
    assert (what[2] == STAGES.index("wait")).sum() == 0
    assert (what[0] == STAGES.index("wait")).mean() == pytest.approx(weather.shares["wait"][0], abs=0.03)
    assert (what == NOTHING).mean() < 0.05


def test_frames_per_second_add_up_to_all_frames(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, n_ranks=3, n_iterations=2, n_batches=4)
    weather = Weather.read(tmp_path)
    done = weather.frames_per_second(97).sum() * weather.seconds / 97
    assert done == pytest.approx(3 * 2 * 4 * 100)


def test_where_ranks_share_orientations_the_slow_one_has_claimed_less(tmp_path: Path) -> None:
    """Ranks that claim work as they become free are all busy for the same time."""
    for rank, items in enumerate((12, 13, 4, 12)):
        lines = [
            {"iteration": i, "stage": "orient", "start": 10.0 * i + b, "seconds": 0.9, "frames": 50,
             "first": 50 * b, "items": items}
            for i in (1, 2) for b in range(4)
        ]  # fmt: skip
        (tmp_path / f"events_rank_{rank:03d}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    weather = Weather.read(tmp_path)
    assert [f.ranks for f in find(weather) if f.kind == "slow rank"] == [(2,)]
    assert weather.relative_rate[2] == pytest.approx(4 / 12)
    assert weather.frames_per_second(60).sum() * weather.seconds / 60 == pytest.approx(2 * 4 * 50)


def test_shares_of_a_rank_are_all_of_its_time(tmp_path: Path, write_logs: Callable[..., None]) -> None:
    write_logs(tmp_path, slow={0: 2.0})
    shares = Weather.read(tmp_path).shares
    np.testing.assert_allclose(sum(shares.values()), 1.0, rtol=1e-6)


def test_nobody_is_charged_for_the_time_between_two_processes(tmp_path: Path) -> None:
    """A run that was killed and resumed an hour later has not worked for that hour."""
    lines = [
        {"stage": "begin", "start": 0.0, "seconds": 0.0, "host": "a"},
        {"stage": "orient", "start": 1.0, "seconds": 8.0, "frames": 10, "first": 0, "iteration": 1},
        {"stage": "save", "start": 9.0, "seconds": 2.0, "iteration": 1},
        {"stage": "begin", "start": 3600.0, "seconds": 0.0, "host": "b"},
        {"stage": "orient", "start": 3601.0, "seconds": 10.0, "frames": 10, "first": 0, "iteration": 2},
    ]
    path = tmp_path / "events_rank_000.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    weather = Weather.read(tmp_path)
    assert weather.ranks[0].seconds == pytest.approx(20.0)
    assert weather.ranks[0].host == "b"
    assert weather.shares["orient"][0] == pytest.approx(0.9)
    assert weather.shares["other"][0] == pytest.approx(0.0)
    what, _ = weather.cells(361)
    assert (what[0] == NOTHING).mean() > 0.9


def test_time_inside_another_stage_is_not_its_own() -> None:
    lines = nested(
        [
            {"stage": "wait", "start": 10.2, "seconds": 0.3, "iteration": 1},
            {"stage": "wait", "start": 10.6, "seconds": 0.1, "iteration": 1},
            {"stage": "solve", "start": 10.0, "seconds": 1.0, "iteration": 1},
            {"stage": "orient", "start": 11.0, "seconds": 2.0, "iteration": 1, "frames": 5, "first": 0},
        ]
    )
    assert [(line.stage, line.depth) for line in lines] == [
        ("solve", 0), ("wait", 1), ("wait", 1), ("orient", 0),
    ]  # fmt: skip
    assert [line.own_seconds for line in lines] == pytest.approx([0.6, 0.3, 0.1, 2.0])


def test_torn_and_foreign_lines_are_no_stages(tmp_path: Path) -> None:
    good = json.dumps({"stage": "orient", "start": 1.0, "seconds": 2.0, "frames": 3, "iteration": 1})
    content = (
        f'{good}\n[1]\n{{"stage": 7}}\nnot json\n{{"stage": "x", "start": "y", "seconds": 1}}\n{good[:20]}'
    )
    (tmp_path / "events_rank_000.jsonl").write_text(content)
    (only,) = read_stage_lines(tmp_path)
    assert [line.frames for line in only.lines] == [3]


def test_logs_without_a_stage_are_weather_too(tmp_path: Path) -> None:
    (tmp_path / "events_rank_000.jsonl").write_text("")
    weather = Weather.read(tmp_path)
    assert weather.seconds == 0
    assert find(weather) == []
    assert (weather.cells(10)[0] == NOTHING).all()


def test_a_folder_without_logs_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no log of stages"):
        Weather.read(tmp_path)
    with pytest.raises(FileError, match="no such folder"):
        Weather.read(tmp_path / "nowhere")
