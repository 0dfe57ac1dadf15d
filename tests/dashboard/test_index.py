"""The list of runs: whole, quick, up to date, and not broken by any folder."""

import json
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orienteer.dashboard.index import RunIndex
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.errors import FileError

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def names(index: RunIndex) -> list[str]:
    return sorted(entry.name for entry in index.entries(age_s=0))


def test_runs_are_found_at_any_depth_and_by_name(tmp_path: Path, made_up: SimpleNamespace) -> None:
    for name in ("a", "b/c", "b/d/e"):
        made_up.write_run(tmp_path / name)
    assert names(RunIndex(Roots([tmp_path]))) == ["a", "b/c", "b/d/e"]


def test_the_root_itself_may_be_a_run(tmp_path: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(tmp_path / "alone")
    assert names(RunIndex(Roots([tmp_path / "alone"]))) == ["alone"]


def test_a_root_inside_another_root_is_listed_once(tmp_path: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(tmp_path / "inner" / "run")
    assert len(names(RunIndex(Roots([tmp_path, tmp_path / "inner"])))) == 1


def test_halves_of_a_validation_are_no_runs_but_the_map_of_a_live_run_is(
    tmp_path: Path, made_up: SimpleNamespace
) -> None:
    made_up.write_run(tmp_path / "run")
    made_up.write_run(tmp_path / "run" / "validation" / "half_1")
    (tmp_path / "live" / "map").mkdir(parents=True)
    (tmp_path / "live" / "live.json").write_text('{"format": "orienteer-live", "source": "tcp://x"}')
    (tmp_path / "live" / "counters.json").write_text('{"processed": 200, "hits": 20, "is_finished": true}')
    made_up.write_run(tmp_path / "live" / "map")
    index = RunIndex(Roots([tmp_path]))
    assert names(index) == ["live", "live/map", "run"]
    live = next(entry.row for entry in index.entries() if entry.name == "live")
    assert (live["kind"], live["status"], live["hit_rate"], live["n_frames"]) == (
        "live",
        "finished",
        0.1,
        200,
    )


def test_what_changes_is_seen_and_nothing_else_is_read_again(
    tmp_path: Path, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    import orienteer.dashboard.index as module

    original = module.read_row
    monkeypatch.setattr(
        module, "read_row", lambda roots, path, live: read.append(path.name) or original(roots, path, live)
    )
    long_ago = time.time() - 1000
    for name in ("a", "b"):
        run = made_up.write_run(tmp_path / name, is_finished=False)
        for path in (*run.iterdir(), run):
            os.utime(path, (long_ago, long_ago))
    os.utime(tmp_path, (long_ago, long_ago))
    index = RunIndex(Roots([tmp_path]))
    names(index)
    assert sorted(read) == ["a", "b"]
    seen, _ = index.changes(0)
    names(index)
    assert sorted(read) == ["a", "b"]
    with (tmp_path / "a" / "events.jsonl").open("a") as log:
        log.write(json.dumps(made_up.step_line(9)) + "\n")
    names(index)
    assert sorted(read) == ["a", "a", "b"]
    assert index.changes(seen)[1] == [entry.id for entry in index.entries() if entry.name == "a"]
    assert next(entry.row["iteration"] for entry in index.entries() if entry.name == "a") == 9
    made_up.write_run(tmp_path / "c")
    assert names(index) == ["a", "b", "c"]


def test_while_the_disk_is_slow_the_old_list_is_given(
    tmp_path: Path, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a look that somebody else has begun."""
    made_up.write_run(tmp_path / "a")
    index = RunIndex(Roots([tmp_path]))
    index.entries()
    is_looking, may_go_on = threading.Event(), threading.Event()
    original = index._runs

    def slow() -> Any:
        is_looking.set()
        may_go_on.wait(60)
        return original()

    monkeypatch.setattr(index, "_runs", slow)
    thread = threading.Thread(target=index.entries, args=(0,))
    thread.start()
    is_looking.wait(60)
    assert [entry.name for entry in index.entries(age_s=1e-9)] == ["a"]
    may_go_on.set()
    thread.join()


def test_a_run_that_is_gone_is_gone(tmp_path: Path, made_up: SimpleNamespace) -> None:
    run = made_up.write_run(tmp_path / "a")
    index = RunIndex(Roots([tmp_path]))
    name = index.entries()[0].id
    for path in run.iterdir():
        path.unlink()
    run.rmdir()
    assert names(index) == []
    with pytest.raises(Refused, match="no such run"):
        index.find(name)


def test_links_that_leave_the_roots_are_not_followed(tmp_path: Path, made_up: SimpleNamespace) -> None:
    made_up.write_run(tmp_path / "secret" / "run")
    inside = made_up.write_run(tmp_path / "root" / "run")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "secret" / "notes.json").write_text('{"note": "top secret"}')
    (inside / "dashboard.json").symlink_to(tmp_path / "secret" / "notes.json")
    (inside / "intensity.h5").symlink_to(tmp_path / "secret" / "notes.json")
    with made_up.serving(tmp_path / "root") as (_, client):
        assert [row["name"] for row in client.get("/api/runs").json()["runs"]] == ["run"]
        assert "secret" not in client.get("/api/runs").text
        run = made_up.run_id(client)
        assert "top secret" not in client.get(f"/api/runs/{run}").text
        assert client.get(f"/api/runs/{run}/volume").status_code == 422


@pytest.mark.parametrize(
    "name", ["run.json", "events.jsonl", "report.html", "settings.toml", "orientations.h5"]
)
def test_no_file_of_a_run_is_served_from_elsewhere(
    tmp_path: Path, made_up: SimpleNamespace, name: str
) -> None:
    run = made_up.write_run(tmp_path / "root" / "run")
    (run / name).unlink(missing_ok=True)
    (tmp_path / "elsewhere").write_text('{"event": "step", "iteration": 1, "note": "top secret"}\n')
    (run / name).symlink_to(tmp_path / "elsewhere")
    with made_up.serving(tmp_path / "root") as (_, client):
        texts = [client.get("/api/runs").text]
        run_id = made_up.run_id(client)
        for part in ("", "/steps", "/log", "/report", "/coverage", "/frames", "/fsc"):
            texts.append(client.get(f"/api/runs/{run_id}{part}").text)
    assert not any("top secret" in text for text in texts)


@pytest.mark.parametrize(
    "name", ["run.json", "events.jsonl", "dashboard.json", "lock", "intensity.h5", "report.html"]
)
def test_a_pipe_instead_of_a_file_makes_nobody_wait(
    tmp_path: Path, made_up: SimpleNamespace, name: str
) -> None:
    run = made_up.write_run(tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with made_up.serving(tmp_path) as (_, client):
        assert client.get("/api/runs").json()["total"] == 1
        run_id = made_up.run_id(client)
        for part in ("", "/steps", "/volume", "/report", "/log"):
            assert client.get(f"/api/runs/{run_id}{part}").status_code < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("format", "version", "method", "input", "settings_hash", "run_id", "seed", "device", "versions")


@FUZZ
@given(
    changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), step=JSON, tail=st.binary(max_size=40)
)
def test_a_description_that_says_anything_breaks_neither_list_nor_page(
    client: httpx.Client,
    root: Path,
    made_up: SimpleNamespace,
    changes: dict[str, Any],
    step: Any,
    tail: bytes,
) -> None:
    made_up.write_run(root / "odd", **changes)
    line = json.dumps({**made_up.step_line(4), "agrees_to_A": step, "stage": step, "seconds_left": step})
    (root / "odd" / "events.jsonl").write_bytes(line.encode() + b"\n" + tail)
    (root / "odd" / "dashboard.json").write_text(json.dumps({"tags": step, "sample": step}))
    # Something that is written by the page makes the server look anew, without waiting.
    client.post(f"/api/runs/{made_up.run_id(client, 'virus')}/tags", json={})
    answer = client.get("/api/runs", params={"sort": "agrees_to_A"})
    assert {row["name"] for row in answer.json()["runs"]} >= {"virus"}
    odd = next((row["id"] for row in answer.json()["runs"] if row["name"] == "odd"), None)
    for part in ("", "/steps", "/fsc", "/log", "/coverage", "/weather", "/frames"):
        assert client.get(f"/api/runs/{odd}{part}").status_code < 500


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"format": "orienteer-run"}',
        b"\xff\xfe",
        b"null",
        b'"' + b"x" * (5 << 20),
    ],
    ids=["empty", "torn", "deep", "incomplete", "binary", "null", "huge"],
)
def test_a_damaged_description_is_said_to_be_one(
    tmp_path: Path, made_up: SimpleNamespace, content: bytes
) -> None:
    made_up.write_run(tmp_path / "good")
    made_up.write_run(tmp_path / "bad")
    (tmp_path / "bad" / "run.json").write_bytes(content)
    rows = {entry.name: entry.row for entry in RunIndex(Roots([tmp_path])).entries()}
    assert rows["good"]["status"] == "finished"
    assert rows["bad"]["status"] in ("damaged", "failed")
    assert rows["bad"]["words"]


def test_a_log_of_any_length_is_read_from_its_end(tmp_path: Path, made_up: SimpleNamespace) -> None:
    run = made_up.write_run(tmp_path / "run", is_finished=False)
    with (run / "events.jsonl").open("ab") as log:
        log.seek(3 << 30)  # a hole: nobody could read it in time
        log.write(b"\n" + json.dumps(made_up.step_line(77)).encode() + b"\n")
    assert RunIndex(Roots([tmp_path])).entries()[0].row["iteration"] == 77


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is not a folder"):
        Roots([tmp_path / "nothing"])


def test_a_file_that_is_replaced_by_a_link_while_it_is_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("top secret")
    path = tmp_path / "root" / "file"
    path.write_text("ours")
    roots = Roots([tmp_path / "root"])
    assert roots.read(path) == b"ours"
    original = roots.file

    def replaced(asked: Path) -> Path:
        found = original(asked)
        path.unlink()
        path.symlink_to(tmp_path / "secret")
        return found

    monkeypatch.setattr(roots, "file", replaced)
    with pytest.raises(FileError, match="outside"):
        roots.read(path)


def test_a_row_is_whole_and_nobody_waits_while_it_is_read(
    tmp_path: Path, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks during a look has all columns of the look before."""
    import orienteer.dashboard.index as module

    made_up.write_run(tmp_path / "a")
    index = RunIndex(Roots([tmp_path]))
    seen, changed = index.changes(0)
    assert len(changed) == 1
    original, met = module.read_row, []

    def read_row(*asked: Any) -> dict[str, Any]:
        row = original(*asked)
        met.append([entry.row["name"] for entry in index.entries(age_s=1e-9)])
        thread = threading.Thread(target=lambda: met.append(index.changes(seen)))
        thread.start()
        thread.join(60)
        met.append(thread.is_alive())
        return row

    monkeypatch.setattr(module, "read_row", read_row)
    index.entries(age_s=0)
    assert met == [["a"], (seen, []), False]
