"""What a page says of several states, of M-TIP, and of orientations that were given."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from orienteer.report import references
from orienteer.report.evidence import Evidence, Found, gather
from orienteer.report.methods import methods
from orienteer.report.opening import draw_opening, unusual
from orienteer.report.results import draw_result
from orienteer.report.states import draw_states, n_states
from orienteer.report.validation_facts import StateFacts, ValidationFacts
from orienteer.volume.volume import Volume


def of_method(evidence: Evidence, name: str, **settings: Any) -> Evidence:
    """The same run as if another method, or other settings, had made it."""
    section = {**evidence.method_settings, **settings}
    described = {**evidence.described, "method": name}
    return replace(evidence, description=Found(described), settings=Found({name: section}))


def with_two_states(evidence: Evidence) -> Evidence:
    table = dict(evidence.orientations.value or {})
    n = len(table["event_id"])
    first = np.where(np.arange(n) % 3 > 0, 0.99, 0.2)
    table["state_probability"] = np.stack([first, 1 - first], axis=1)
    table["model"] = np.where(first > 0.5, 0, 1)
    volume = (evidence.intensities.value or ())[0]
    events = list(evidence.events.value or [])
    states = [{"occupancy": 0.72, "agrees_to_A": 60.0}, {"occupancy": 0.28, "agrees_to_A": None}]
    events = [{**event, "states": states} if event["event"] == "step" else event for event in events]
    return replace(
        evidence, orientations=Found(table), intensities=Found((volume, volume)), events=Found(events)
    )


def test_each_state_is_told_with_its_share_and_how_surely_frames_show_it(
    run_folder: Path, read_page: Callable[..., Any]
) -> None:
    evidence = with_two_states(gather(run_folder))
    assert n_states(evidence) == 2
    validation = ValidationFacts(states=[StateFacts(55.0, 52.0), StateFacts(None, None)])
    said = read_page(str(draw_states(evidence, validation))).text
    assert "another state" not in said
    copy = ValidationFacts(states=[StateFacts(55.0, 52.0, is_distinct=False), StateFacts(None, None)])
    assert "55 Å, but agrees with another state as well" in read_page(str(draw_states(evidence, copy))).text
    for words in ("72 %", "28 %", "60 Å", "55 Å", "nowhere", "state_probability", "100 %", "0 %"):
        assert words in said, words


def test_the_methods_count_the_states_that_there_are(run_folder: Path) -> None:
    for models, words in (
        ("auto", "as many as frames that no model had seen could distinguish"),
        (2, "was given"),
    ):
        evidence = of_method(with_two_states(gather(run_folder)), "emc", models=models)
        said = " ".join(methods(evidence, None, None)[0])
        assert "2 three-dimensional intensities were" in said
        assert words in said
        assert "72 % + 28 %" in said
        assert "auto three" not in said


def test_mtip_is_named_and_cited(run_folder: Path) -> None:
    sentences, cited = methods(of_method(gather(run_folder), "mtip", phasing=True), None, None)
    said = " ".join(sentences)
    assert "multi-tiered iterative phasing (Donatelli et al. 2017)" in said
    assert "The symmetry I was imposed." in said
    assert cited == [references.MTIP]


def test_known_orientations_are_the_first_that_is_said(
    run_folder: Path, read_page: Callable[..., Any]
) -> None:
    column = {"known_orientations_column": "truth_orientation"}
    evidence = of_method(gather(run_folder), "emc", **column)
    opening = read_page(str(draw_opening(evidence, "", unusual(evidence, None, None)))).text
    name = run_folder.resolve().name
    assert opening.startswith(f"{name} Known orientations were given, not found: known_orientations_column")
    assert "in known orientations" in opening
    assert "were not used" not in opening
    sentences, _ = methods(evidence, None, ValidationFacts())
    assert sentences[0].startswith("Known orientations were given")
    assert "without any knowledge" not in " ".join(sentences)
    assert "merged at the known orientations" in " ".join(sentences)


def test_the_density_of_the_loop_is_shown_until_there_is_a_better_one(
    bare_folder: Path, read_page: Callable[..., Any]
) -> None:
    axis = np.arange(24) - 12.0
    ball = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 < 36
    loop = Volume(ball.astype(np.float32), 10.0, "real")
    evidence = gather(bare_folder)
    assert "phased in the loop of M-TIP" not in read_page(str(draw_result(evidence, None))).text
    shown = read_page(str(draw_result(replace(evidence, loop_density=Found(loop)), None))).text
    assert "phased in the loop of M-TIP" in shown
