"""A live run on the page: its numbers, its powder and its hits."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.live.journal import Journal, Segment
from orienteer.live.summary import Summary
from orienteer.source.sparse_photons import photons_from_dense

SHAPE = (3, 4)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """A live run of ten shots, every second one a hit of as many photons as its number."""
    folder = tmp_path / "live"
    folder.mkdir()
    described = {"format": "orienteer-live", "version": 1, "source": "tcp://beam", "frame_shape": SHAPE}
    (folder / "live.json").write_text(json.dumps(described))
    (folder / "counters.json").write_text(json.dumps({"processed": 10, "hits": 5}))
    ids = np.arange(10, dtype=np.uint64) + np.uint64(2**60)
    rows = np.arange(0, 10, 2)
    frames = np.zeros((5, 12), np.int32)
    frames[:, 5] = rows
    summary = Summary()
    summary.counters.received = summary.counters.processed = 10
    summary.add(ids, rows, np.full(5, 300.0), ["single"] * 4 + ["multiple"], 1e9)
    powder = {"hits": frames.sum(axis=0).astype(np.float64), "background": np.full(12, 0.5)}
    shots = {"event_id": ids, "size_A": np.full(10, 300.0)}
    Journal(folder).commit(
        Segment(SHAPE, shots, rows, photons_from_dense(frames), summary.as_json(), {"powder": powder})
    )
    return tmp_path


def test_the_numbers_of_a_live_run_are_told(live: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(live) as (_, client):
        row = client.get("/api/runs").json()["runs"][0]
        assert (row["kind"], row["hit_rate"]) == ("live", 0.5)
        told = client.get(f"/api/live/{row['id']}").json()
    assert told["counters"]["received"] == told["counters"]["processed"] == 10
    assert told["kinds"] == {"single": 4, "multiple": 1}
    assert sum(told["size_A"]["counts"]) == 5
    assert told["hit_rate"]["hits"] == [5]
    assert told["recent_hits"][0] == str(2**60 + 8)


def test_powder_and_hits_are_pictures(live: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(live) as (_, client):
        run = made_up.run_id(client)
        answer = client.get(f"/api/live/{run}/powder")
        assert answer.headers["x-shape"] == "3,4"
        picture = np.frombuffer(answer.content, np.float32).reshape(SHAPE)
        assert picture[1, 1] == 20.0
        assert picture.sum() == 20.0
        background = client.get(f"/api/live/{run}/powder", params={"of": "background"}).content
        assert set(np.frombuffer(background, np.float32)) == {0.5}
        frames = client.get(f"/api/runs/{run}/frames").json()
        assert frames["total"] == 5
        assert frames["event_id"][3] == str(2**60 + 6)
        hit = client.get(f"/api/runs/{run}/frame/{2**60 + 6}")
        assert np.frombuffer(hit.content, np.uint16).reshape(SHAPE)[1, 1] == 6


def test_frames_of_the_growing_map_are_the_hits_of_its_live_run(live: Path, made_up: SimpleNamespace) -> None:
    described = {"path": str(live / "live"), "format": "live", "frames": 5}
    made_up.write_run(live / "live" / "map", input=described)
    with made_up.serving(live / "live") as (_, client):
        run = made_up.run_id(client, "map")
        hit = client.get(f"/api/runs/{run}/frame/{2**60 + 6}")
        assert np.frombuffer(hit.content, np.uint16).reshape(SHAPE)[1, 1] == 6
    with made_up.serving(live / "live" / "map") as (_, client):
        answer = client.get(f"/api/runs/{made_up.run_id(client)}/frame/{2**60 + 6}")
        assert answer.status_code == 404
        assert "outside" in answer.json()["error"]


def test_a_run_that_is_not_live_is_none(root: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(root) as (_, client):
        assert client.get(f"/api/live/{made_up.run_id(client)}").status_code == 404


def test_a_live_run_that_has_received_nothing_is_empty(tmp_path: Path, made_up: SimpleNamespace) -> None:
    (tmp_path / "live.json").write_text('{"format": "orienteer-live", "version": 1}')
    with made_up.serving(tmp_path) as (_, client):
        run = made_up.run_id(client)
        assert client.get(f"/api/live/{run}").json()["counters"]["received"] == 0
        assert client.get(f"/api/live/{run}/powder").status_code == 404
        assert client.get(f"/api/runs/{run}/frames").status_code == 422
