"""What the page asks about runs: search and order, one run, its steps and its volumes."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

from orienteer.dashboard.link_guard import LinkGuard
from orienteer.dashboard.roots import Roots
from orienteer.dashboard.steps import StepLogs
from orienteer.dashboard.volumes import MOST_VOXELS, read_small, shrink
from orienteer.errors import FileError
from orienteer.volume.opening import open_volumes, write_volume
from orienteer.volume.volume import Volume


def test_the_list_is_searched_ordered_and_cut(tmp_path: Path, made_up: SimpleNamespace) -> None:
    for k, name in enumerate(("alpha", "beta", "gamma")):
        made_up.write_run(tmp_path / name, n_steps=3 - k)
    (tmp_path / "beta" / "dashboard.json").write_text('{"tags": ["good one"], "sample": "MS2"}')
    with made_up.serving(tmp_path) as (_, client):

        def listed(**asked: object) -> list[str]:
            return [row["name"] for row in client.get("/api/runs", params=asked).json()["runs"]]

        assert listed(sort="name") == ["alpha", "beta", "gamma"]
        assert listed(sort="-iteration") == ["alpha", "beta", "gamma"]
        assert listed(sort="name", offset=1, limit=1) == ["beta"]
        assert listed(search="GAM") == ["gamma"]
        assert listed(search="good ms2") == ["beta"]
        assert listed(tag="good one") == ["beta"]
        assert listed(sample="MS2") == ["beta"]
        assert listed(search="nothing") == []
        assert client.get("/api/runs", params={"limit": 1}).json()["total"] == 3
        assert client.get("/api/runs", params={"limit": 10**6}).status_code == 422


def test_the_page_comes_with_its_modules_and_only_when_it_has_changed(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    modules = [part.split(">")[0].strip(" <") for part in page.headers["link"].split(",")]
    assert modules
    for module in modules:
        answer = client.get(module)
        assert "javascript" in answer.headers["content-type"]
        assert client.get(module, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_a_run_tells_what_there_is_to_look_at(client: httpx.Client, made_up: SimpleNamespace) -> None:
    told = client.get(f"/api/runs/{made_up.run_id(client)}").json()
    assert told["settings"] == {"emc": {"symmetry": "C1"}}
    assert told["resolution_A"] == 21.0
    assert told["agrees_to_A"] == 30.0
    assert told["words"].startswith("Finished after 3 iterations")
    has = {name for name, there in told["has"].items() if there}
    assert has == {"steps", "volume", "density", "fsc", "orientations", "report", "log"}


def test_a_validation_of_another_run_claims_no_resolution(root: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(root / "virus", run_id="begun anew")
    with made_up.serving(root) as (_, client):
        assert client.get("/api/runs").json()["runs"][0]["resolution_A"] is None


def test_steps_come_as_columns_and_only_what_is_new(client: httpx.Client, made_up: SimpleNamespace) -> None:
    run = made_up.run_id(client)
    told = client.get(f"/api/runs/{run}/steps").json()
    assert told["iteration"] == [1, 2, 3]
    assert told["log_likelihood"] == [-999.0, -998.0, -997.0]
    assert told["last"]["radial"]["half_correlation"] == [0.9, 0.4]
    assert client.get(f"/api/runs/{run}/steps", params={"after": 2}).json()["iteration"] == [3]


def test_a_growing_log_is_read_on_from_where_it_was(tmp_path: Path, made_up: SimpleNamespace) -> None:
    """Pieces that end within a line, lines that are none, and a log that was cut and written anew."""
    path = tmp_path / "events.jsonl"
    logs = StepLogs(Roots([tmp_path]))
    lines = [json.dumps(made_up.step_line(k)).encode() + b"\n" for k in range(1, 40)]
    lines.insert(7, b"no json\n")
    lines.insert(9, b'{"event": "step", "iteration": "seven"}\n')
    content = b"".join(lines)
    for end in range(0, len(content) + 500, 501):
        path.open("ab").write(content[path.stat().st_size if path.exists() else 0 : end])
        whole = content[:end].count(b"\n")
        expected = [
            k for k in range(1, 40) if lines.index(json.dumps(made_up.step_line(k)).encode() + b"\n") < whole
        ]
        assert logs.columns(path)["iteration"] == expected
    (tmp_path / "new").write_bytes(b"".join(lines[:5]))
    (tmp_path / "new").rename(path)
    assert logs.columns(path)["iteration"] == [1, 2, 3, 4, 5]


def test_a_step_of_endless_numbers_is_cut(tmp_path: Path, made_up: SimpleNamespace) -> None:
    step = made_up.step_line(1, **{f"number {k}": k for k in range(1000)})
    (tmp_path / "events.jsonl").write_text(json.dumps(step) + "\n")
    columns = StepLogs(Roots([tmp_path])).columns(tmp_path / "events.jsonl")
    assert columns["iteration"] == [1]
    assert len(columns) < 110


def test_a_step_that_is_nested_deeply_is_a_sentence(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    # So deep that it can be read, but not looked through; from 3.12 on a list in a list takes one frame less.
    depth = 900 if sys.version_info < (3, 12) else 990
    with (root / "virus" / "events.jsonl").open("a") as log:
        log.write('{"event": "step", "iteration": 9, "x": ' + "[" * depth + "]" * depth + "}\n")
    answer = client.get(f"/api/runs/{made_up.run_id(client)}/steps")
    assert answer.status_code == 422
    assert "nested" in answer.json()["error"]


def test_marks_of_any_length_are_cut(tmp_path: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(tmp_path / "run")
    marks = {"tags": ["x" * 10_000] * 300, "sample": "y" * 100_000, "note": "z" * 100_000}
    (tmp_path / "run" / "dashboard.json").write_text(json.dumps(marks))
    with made_up.serving(tmp_path) as (_, client):
        assert len(client.get("/api/runs").content) < 100_000


def slow_mean(values: np.ndarray, size: int) -> np.ndarray:
    """Means over boxes, by cutting every voxel into pieces so small that none lies in two boxes."""
    n = len(values)
    fine = np.repeat(np.repeat(np.repeat(values, size, 0), size, 1), size, 2)
    return np.nanmean(fine.reshape(size, n, size, n, size, n), axis=(1, 3, 5))


@pytest.mark.parametrize(("n", "size"), [(12, 6), (12, 5), (7, 4)])
def test_a_volume_shrinks_to_the_means_of_its_boxes(n: int, size: int) -> None:
    values = np.random.default_rng(n).random((n, n, n)).astype(np.float32)
    np.testing.assert_allclose(shrink(values, size), slow_mean(values, size), rtol=1e-5)


def test_voxels_that_were_never_measured_do_not_count() -> None:
    values = np.full((4, 4, 4), np.nan, np.float32)
    values[:2, :2, :2] = 5.0
    values[0, 0, 2] = 7.0
    small = shrink(values, 2)
    assert small[0, 0, 0] == 5.0
    assert small[0, 0, 1] == 7.0
    assert np.isnan(small[1, 1, 1])


def test_a_volume_comes_as_bytes_that_can_be_turned_back(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    run = made_up.run_id(client)
    for model, volume in enumerate(open_volumes(root / "virus" / "intensity.h5"), start=1):
        answer = client.get(f"/api/runs/{run}/volume", params={"model": model})
        shape = [int(n) for n in answer.headers["x-shape"].split(",")]
        low, high = float(answer.headers["x-low"]), float(answer.headers["x-high"])
        back = low + np.frombuffer(answer.content, np.uint8).reshape(shape) / 255 * (high - low)
        assert answer.headers["x-scale"] == "log"
        assert float(answer.headers["x-voxel"]) == pytest.approx(0.01)
        np.testing.assert_allclose(back, np.log10(volume.values), atol=(high - low) / 500)
    assert client.get(f"/api/runs/{run}/volume", params={"model": 3}).status_code == 404
    assert client.get(f"/api/runs/{run}/volume", params={"kind": "../../x"}).status_code == 422


def test_a_small_density_is_smaller_and_its_voxels_larger(
    client: httpx.Client, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/volume"
    answer = client.get(url, params={"kind": "density", "size": 8})
    assert answer.headers["x-shape"] == "8,8,8"
    assert float(answer.headers["x-voxel"]) == pytest.approx(2.0 * 12 / 8)
    assert answer.headers["x-unit"] == "A"


def test_a_browser_that_has_a_volume_is_told_so_until_it_changes(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/volume"
    tag = client.get(url).headers["etag"]
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 304
    write_volume(root / "virus" / "intensity.h5", Volume(np.full((12,) * 3, 3.0), 0.01, "reciprocal"))
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 200


def test_a_volume_too_large_for_a_page_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "density.mrc"
    with path.open("wb") as file:
        file.truncate(4 * MOST_VOXELS + 2000)
    with pytest.raises(FileError, match="along an edge"):
        read_small(LinkGuard(Roots([tmp_path])), path, "density", 1, 64)


@pytest.mark.parametrize("name", ["intensity.h5", "density.mrc", "orientations.h5"])
def test_a_torn_file_is_a_sentence(
    client: httpx.Client, root: Path, made_up: SimpleNamespace, name: str
) -> None:
    path = root / "virus" / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    part = {"intensity.h5": "volume", "density.mrc": "volume?kind=density", "orientations.h5": "coverage"}[
        name
    ]
    answer = client.get(f"/api/runs/{made_up.run_id(client)}/{part}")
    assert answer.status_code == 422
    assert name in answer.json()["error"]


def test_a_page_that_watches_hears_of_what_changes(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    run = made_up.run_id(client)
    headers = {"Authorization": f"Bearer {made_up.token}"}
    with connect(f"ws://127.0.0.1:{client.base_url.port}/api/watch", additional_headers=headers) as socket:
        socket.recv(timeout=60)
        with (root / "virus" / "events.jsonl").open("a") as log:
            log.write(json.dumps(made_up.step_line(4)) + "\n")
        made_up.wait_for(lambda: run in json.loads(socket.recv(timeout=60))["runs"])
    assert client.get("/api/runs").json()["runs"][0]["iteration"] == 4


def test_the_list_tells_what_it_can_be_filtered_by(tmp_path: Path, made_up: SimpleNamespace) -> None:
    for name in ("alpha", "beta"):
        made_up.write_run(tmp_path / name)
    (tmp_path / "beta" / "dashboard.json").write_text('{"tags": ["b", "a"], "sample": "MS2"}')
    with made_up.serving(tmp_path, is_read_only=True) as (_, client):
        told = client.get("/api/runs", params={"search": "alpha"}).json()
        assert (told["tags"], told["samples"]) == (["a", "b"], ["MS2"])
        assert told["is_read_only"]
        assert not told["has_campaign"]
        assert client.get("/api/runs", params={"kind": "emc"}).json()["total"] == 2
        assert client.get("/api/runs", params={"kind": "live"}).json()["total"] == 0


def test_a_live_run_names_its_map(tmp_path: Path, made_up: SimpleNamespace) -> None:
    (tmp_path / "beam").mkdir()
    (tmp_path / "beam" / "live.json").write_text('{"format": "orienteer-live"}')
    made_up.write_run(tmp_path / "beam" / "map")
    with made_up.serving(tmp_path) as (_, client):
        live, map_ = (made_up.run_id(client, search) for search in ("live", "map"))
        assert client.get(f"/api/runs/{live}").json()["map"] == map_
        assert client.get(f"/api/runs/{map_}").json()["map"] is None


def test_a_density_is_cut_to_what_it_holds(tmp_path: Path) -> None:
    density = np.zeros((48, 48, 48), np.float32)
    density[20:29, 22:27, 24] = 1
    write_volume(tmp_path / "density.mrc", Volume(density, 2.0))
    small = read_small(LinkGuard(Roots([tmp_path])), tmp_path / "density.mrc", "density", 1, 64)
    assert small.voxels.shape == (12, 12, 12)
    assert small.voxel == 2.0
    assert small.voxels[6, 6, 6] == 255
    assert (small.voxels == 255).sum() == (density == 1).sum()
