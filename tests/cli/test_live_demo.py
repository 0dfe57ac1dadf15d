"""``orienteer live --demo``: a stream is simulated, replayed, received and ends in a map with a picture."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from orienteer.cli import live_demo
from orienteer.errors import OrienteerError
from orienteer.source.opening import open as open_source

N_FRAMES = 240
# The experiment of the demo, smaller in everything.
SMALL = {
    "pixels = 64": "pixels = 24",
    "edge_resolution_A = 30": "edge_resolution_A = 80",
    "beam_stop_radius_pixels = 2": "beam_stop_radius_pixels = 1",
    "frames = 5000": f"frames = {N_FRAMES}",
    "empty_fraction = 0.85": "empty_fraction = 0.6",
    "resolution_A = 30\nstarts": "resolution_A = 80\nstarts",
    "first_hits = 200": 'first_hits = 20\nfinish = "no"',
}


def test_what_is_not_installed_is_told_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(OrienteerError, match="pyzmq") as told:
        live_demo.run_demo(tmp_path / "demo", [], 0, "cpu", 0, 10, True)
    assert ".[live]" in told.value.hint
    assert not (tmp_path / "demo").exists()


@pytest.mark.timeout(300)
def test_the_demo_goes_from_a_simulated_stream_to_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    settings = live_demo.SETTINGS
    for large, small in SMALL.items():
        assert settings.count(large) == 1
        settings = settings.replace(large, small)
    monkeypatch.setattr(live_demo, "SETTINGS", settings)
    out = tmp_path / "demo"
    database = tmp_path / "campaign.db"
    into = (str(database), "virus") if find_spec("sqlalchemy") and find_spec("alembic") else ("", "")
    live_demo.run_demo(out, ["live.map_of=hits"], 0, "cpu", 0, 10, True, into)
    told = json.loads(capsys.readouterr().out)
    assert [told[name] for name in ("received", "dropped", "processed")] == [N_FRAMES, 0, N_FRAMES]
    assert told["is_finished"] is True
    assert 40 < told["hits"] < 140
    assert Path(told["picture"]).stat().st_size > 1000
    assert (Path(told["map"]) / "intensity.mrc").exists()
    assert len(open_source(out / "run").event_ids()) == told["hits"]
    if into[0]:
        from orienteer.campaign.campaign import Campaign

        with Campaign.open(database) as campaign:
            _, [run] = campaign.runs()
        assert [run["sample"], run["n_shots"], run["n_hits"], run["is_open"]] == [
            "virus", N_FRAMES, told["hits"], False
        ]  # fmt: skip


@pytest.mark.parametrize("unused", [["--source", "tcp://host:5555"], ["--filter", "f.py:f"]])
def test_what_the_demo_would_not_look_at_is_refused(run: Any, unused: list[str]) -> None:
    done = run("live", "--demo", "--out", "demo", *unused)
    assert done.status != 0
    assert f"cannot use {unused[0]}" in " ".join(done.errors.split())
    assert not Path("demo").exists()
