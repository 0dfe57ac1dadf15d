"""What the page asks about results: agreement, directions, the weather of ranks, log, report and frames."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

import orienteer
from orienteer.run.orientations_file import read_orientations
from orienteer.source.patterns import Patterns


def test_a_validation_is_shown_with_its_claim(client: httpx.Client, made_up: SimpleNamespace) -> None:
    told = client.get(f"/api/runs/{made_up.run_id(client)}/fsc").json()
    assert told["resolution_A"] == 21.0
    assert told["words"].startswith("Two halves agree to 21")
    curve = next(curve for curve in told["curves"] if "corrected" in curve["name"])
    assert curve["q_inv_A"] == [0.01, 0.02]
    assert curve["value"] == [1.0, 0.5]


def test_without_a_validation_no_resolution_is_claimed(tmp_path: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(tmp_path / "run")
    with made_up.serving(tmp_path) as (_, client):
        told = client.get(f"/api/runs/{made_up.run_id(client)}/fsc").json()
    assert told["resolution_A"] is None
    assert "Not validated" in told["words"]
    assert [curve["name"] for curve in told["curves"]] == ["half models within the run (not independent)"]


def test_directions_of_the_beam_are_counted_in_cells_of_equal_area(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    told = client.get(f"/api/runs/{made_up.run_id(client)}/coverage").json()
    quaternions = read_orientations(root / "virus" / "orientations.h5")["quaternion"]
    counts = np.zeros((told["latitudes"], told["longitudes"]))
    for w, x, y, z in quaternions:  # the last row of the rotation matrix is R^T z
        beam = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
        row = int((beam[2] + 1) / 2 * told["latitudes"])
        column = int((np.arctan2(beam[1], beam[0]) + np.pi) / (2 * np.pi) * told["longitudes"])
        counts[row, column] += 1
    expected = counts / counts.mean()
    np.testing.assert_allclose(np.reshape(told["counts"], expected.shape), expected, atol=1e-3)


def test_the_log_goes_on_where_the_page_has_it(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/log"
    first = client.get(url).json()
    assert "step 3" in first["text"]
    assert client.get(url, params={"after": first["next"], "file": first["file"]}).json()["text"] == ""
    with (root / "virus" / "events.jsonl").open("a") as log:
        log.write(json.dumps(made_up.step_line(4)) + "\n" + '{"event": "torn')
    then = client.get(url, params={"after": first["next"], "file": first["file"]}).json()
    assert "step 4" in then["text"]
    assert "torn" not in then["text"]
    (root / "virus" / "slurm").mkdir()
    (root / "virus" / "slurm" / "12.log").write_text("printed by the job\n" * 10_000)
    job = client.get(url, params={"after": then["next"], "file": then["file"]}).json()
    assert job["file"] == "slurm/12.log"
    assert job["text"].startswith("printed")
    assert len(job["text"]) < 70_000
    assert job["next"] == 190_000


def test_a_line_that_is_longer_than_a_piece_does_not_hold_up_the_log(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/log"
    told = client.get(url).json()
    with (root / "virus" / "events.jsonl").open("a") as log:
        log.write("x" * 200_000 + "\n" + json.dumps(made_up.step_line(9)) + "\n")
    text = ""
    for _ in range(6):
        told = client.get(url, params={"after": told["next"], "file": told["file"]}).json()
        text += told["text"]
    assert "step 9" in text


def test_numbers_that_no_computer_counts_break_nothing(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    huge = 10**400
    step = made_up.step_line(4, log_likelihood=huge, radial={"q_inv_A": [huge], "half_correlation": [huge]})
    with (root / "virus" / "events.jsonl").open("a") as log:
        log.write(json.dumps(step) + "\n")
    for part in ("", "/steps", "/fsc", "/log"):
        assert client.get(f"/api/runs/{made_up.run_id(client)}{part}").status_code == 200


def test_a_report_is_served_in_a_sandbox(client: httpx.Client, made_up: SimpleNamespace) -> None:
    answer = client.get(f"/api/runs/{made_up.run_id(client)}/report")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy
    assert "<script>" in answer.text


def test_frames_are_a_table_with_ids_that_a_browser_can_hold(
    client: httpx.Client, made_up: SimpleNamespace
) -> None:
    told = client.get(f"/api/runs/{made_up.run_id(client)}/frames", params={"first": 38, "n": 5}).json()
    assert told["total"] == 40
    assert told["event_id"] == [str(made_up.first_event + 38), str(made_up.first_event + 39)]
    assert len(told["columns"]["fluence"]) == 2
    assert np.shape(told["columns"]["quaternion"]) == (2, 4)


@pytest.fixture
def with_data(root: Path, made_up: SimpleNamespace) -> Path:
    """The run with a data file of three frames below the root."""
    detector = orienteer.square_detector(6, pixel_size_m=5e-4, distance_m=0.1)
    detector = detector.with_mask(np.where(np.arange(36) == 7, 2, 0).astype(np.uint8))
    ids = np.arange(3, dtype=np.uint64) + np.uint64(made_up.first_event)
    frames = np.arange(3 * 36, dtype=np.int32).reshape(3, 36)
    with orienteer.writer_for(root / "frames.h5", detector=detector) as writer:
        writer.append(Patterns(frames, ids))
    made_up.write_run(root / "virus", input={"path": str(root / "frames.h5"), "frames": 3})
    return root / "frames.h5"


def test_a_frame_is_a_picture_of_its_photons(
    client: httpx.Client, with_data: Path, made_up: SimpleNamespace
) -> None:
    event = made_up.first_event + 1
    answer = client.get(f"/api/runs/{made_up.run_id(client)}/frame/{event}")
    picture = np.frombuffer(answer.content, np.uint16).reshape(6, 6)
    source = orienteer.open(with_data)
    expected = source.detector.assemble(source.read([1]).dense()[0].astype(float))
    expected[expected == 36 + 7] = 65535
    np.testing.assert_array_equal(picture, expected)
    for other in (5, 2**64, 10**20 - 1):
        assert client.get(f"/api/runs/{made_up.run_id(client)}/frame/{other}").status_code == 404


def test_a_run_that_was_begun_anew_shows_its_new_frames(
    client: httpx.Client, with_data: Path, root: Path, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/frame/{made_up.first_event}"
    before = client.get(url)
    ids = np.arange(3, dtype=np.uint64) + np.uint64(made_up.first_event)
    with orienteer.writer_for(root / "others.h5", detector=orienteer.open(with_data).detector) as writer:
        writer.append(Patterns(np.full((3, 36), 4, np.int32), ids))
    made_up.write_run(root / "virus", input={"path": str(root / "others.h5"), "frames": 3})
    after = client.get(url, headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert set(np.frombuffer(after.content, np.uint16)) == {4, 65535}


def test_data_outside_of_the_roots_are_not_served(
    client: httpx.Client, with_data: Path, root: Path, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    outside = with_data.rename(tmp_path / "outside.h5")
    made_up.write_run(root / "virus", input={"path": str(outside), "frames": 3})
    answer = client.get(f"/api/runs/{made_up.run_id(client)}/frame/{made_up.first_event}")
    assert answer.status_code == 404
    assert "outside" in answer.json()["error"]


def test_the_weather_of_many_ranks_is_told(
    root: Path, made_up: SimpleNamespace, write_logs: Callable[..., None]
) -> None:
    write_logs(root / "virus", n_ranks=3)
    with made_up.serving(root) as (_, client):
        told = client.get(f"/api/runs/{made_up.run_id(client)}/weather").json()
    assert [rank["rank"] for rank in told["ranks"]] == [0, 1, 2]
    assert np.shape(told["what"]) == np.shape(told["rate"]) == (3, len(told["t_s"]))
    assert "orient" in told["stage_names"]
