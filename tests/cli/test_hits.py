"""``orienteer hits``: from a file of shots to a file of hits and a table."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from orienteer.cli.main import app
from orienteer.hits.kinds import HitKind
from orienteer.simulation.truth import ShotKind
from orienteer.source.opening import open as open_source

runner = CliRunner()


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    path = tmp_path_factory.mktemp("shots") / "shots.h5"
    arguments = (
        "simulate icosahedron --frames 1500 --photons-per-frame 400 --background-photons 400 "
        "--empty-fraction 0.8 --junk-fraction 0.04 --set detector.pixels=48 --set particle.diameter_A=300 "
        "--set detector.edge_resolution_A=40"
    )
    result = runner.invoke(app, [*arguments.split(), "--out", str(path)])
    assert result.exit_code == 0, result.output
    return path


def invoke(*arguments):
    return runner.invoke(app, ["hits", *map(str, arguments)])


def test_hits_and_a_table_are_written(shots, tmp_path):
    out, table = tmp_path / "hits.h5", tmp_path / "table.csv"
    result = invoke(shots, "--out", out, "--table", table, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    everything, hits = open_source(shots), open_source(out)
    assert report["shots"] == len(everything) == 1500
    assert report["hits"] == report["written"] == len(hits) == sum(report["kinds"].values())
    kind = everything.read_columns(["truth_kind"])["truth_kind"]
    found = np.isin(everything.event_ids(), hits.event_ids())
    assert found[kind == ShotKind.HIT].mean() > 0.99
    assert found[kind == ShotKind.EMPTY].sum() <= 3
    assert {"hit_score", "size_A", "kind", "photons", "wavelength_A"} <= set(hits.column_names)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_array_equal([row["is_hit"] == "1" for row in rows], found)


def test_only_single_particles_are_written_where_asked_for(shots, tmp_path):
    out = tmp_path / "single.h5"
    result = invoke(shots, "--out", out, "--single", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    hits = open_source(out)
    assert report["written"] == len(hits) == report["kinds"]["single"] < report["hits"]
    assert (hits.read_columns(["kind"])["kind"] == HitKind.SINGLE).all()


def test_settings_are_flags_and_the_result_is_told_in_words(shots, tmp_path):
    result = invoke(shots, "--out", tmp_path / "hits.h5", "--threshold", "1e5", "--no-judge-kinds")
    assert result.exit_code == 0, result.output
    assert "0 hits in 1,500 shots" in result.output
    assert "need a detector" not in result.output


def test_shots_of_which_none_stands_out_are_told_what_to_do_with_a_file_of_hits(shots, tmp_path):
    result = invoke(shots, "--out", tmp_path / "hits.h5", "--threshold", "1e5")
    assert "--no-find" in result.output
    assert "--background" in result.output
    assert "--no-find" not in invoke(shots, "--out", tmp_path / "hits.h5").output


def test_nothing_is_written_over_the_input_or_over_the_hits(shots, tmp_path):
    out = tmp_path / "hits.h5"
    for arguments in (["--out", shots], ["--out", out, "--table", shots], ["--out", out, "--table", out]):
        result = invoke(shots, *arguments)
        assert result.exit_code != 0
        assert not out.exists()
    assert len(open_source(shots)) == 1500
