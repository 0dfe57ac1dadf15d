"""Steps are lists of arguments in which the run's own names stand, each as it is."""

from pathlib import Path
from typing import Any

from orienteer.campaign.rules import Rule
from orienteer.campaign.steps import steps_of

RUN: dict[str, Any] = {"name": "r1", "sample": "virus", "data": "/raw/r1.h5", "folder": None}


def test_named_steps_hand_on_what_the_one_before_has_made() -> None:
    rule = Rule(out="/out", steps=["hits", "reconstruct", "report"], settings="s.toml")
    hits, reconstruct, report = steps_of(rule, RUN)
    assert hits.arguments[:4] == ("hits", "/raw/r1.h5", "--out", "/out/r1/hits.h5")
    assert reconstruct.arguments[:4] == (
        "reconstruct",
        "/out/r1/hits.h5",
        "--out",
        "/out/r1/reconstruction",
    )
    assert "--settings" in reconstruct.arguments
    assert report.arguments == ("report", "/out/r1/reconstruction", "--json")
    assert [Path(step.folder).name for step in (hits, reconstruct, report)] == [
        "01_hits",
        "02_reconstruct",
        "03_report",
    ]


def test_without_a_step_for_hits_the_run_itself_is_reconstructed() -> None:
    rule = Rule(out="/out", steps=["reconstruct"])
    assert steps_of(rule, RUN)[0].arguments[1] == "/raw/r1.h5"
    assert steps_of(rule, {**RUN, "folder": "/live/r1"})[0].arguments[1] == "/live/r1"


def test_through_slurm_a_reconstruction_is_submitted() -> None:
    rule = Rule(out="/out", steps=["hits", "reconstruct"], settings="s.toml", where="slurm")
    submit = steps_of(rule, {**RUN, "name": "r 1"})[1]
    assert submit.arguments[:2] == ("submit", "s.toml")
    assert 'run.data="/out/r 1/hits.h5"' in submit.arguments
    assert 'run.out="/out/r 1/reconstruction"' in submit.arguments


def test_what_stands_for_a_name_is_not_looked_at_again() -> None:
    rule = Rule(out="/out", steps=[["convert", "{data}", "{folder}/{name}.cxi", "--x={sample}"]])
    run = {**RUN, "data": "-{folder} $(x); 'y'", "sample": "{name}"}
    assert steps_of(rule, run)[0].arguments == (
        "convert",
        "./-{folder} $(x); 'y'",
        "/out/r1/r1.cxi",
        "--x={name}",
    )
