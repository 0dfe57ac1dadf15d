"""The first lines: one honest sentence, and what one must know before one believes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.report.evidence import gather
from orienteer.report.methods import methods
from orienteer.report.opening import NOT_VALIDATED, claim, draw_opening, unusual
from orienteer.report.phasing_facts import PhasingFacts, phasing_facts
from orienteer.report.trust import draw_trust
from orienteer.report.validation_facts import ValidationFacts, validation_facts
from orienteer.run.orientations_file import read_orientations, write_orientations


def known_first(folder: Path) -> str:
    evidence = gather(folder)
    phasing, validation = evidence.phasing.value, evidence.validation.value
    said = unusual(
        evidence,
        None if phasing is None else phasing_facts(phasing),
        None if validation is None else validation_facts(validation),
    )
    assert all(words.endswith(".") for words in said)
    return "\n".join(said)


def change_settings(folder: Path, old: str, new: str) -> None:
    file = folder / "settings.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_without_a_validation_nothing_is_claimed() -> None:
    assert claim(None) == NOT_VALIDATED
    assert (
        claim(None, "validation.json: is damaged.")
        == "validation.json: is damaged. No resolution is claimed."
    )


def test_the_claim_is_the_one_of_the_validation(run_folder: Path) -> None:
    said = gather(run_folder).validation.value
    assert said is not None
    assert claim(validation_facts(said)).startswith("Two independent halves of 27 and 27 frames agree")


def test_models_that_a_limit_kept_from_beginning_are_told(run_folder: Path) -> None:
    assert "models were asked for" not in known_first(run_folder)
    change_settings(run_folder, "models = 1", "models = 2")
    assert "2 models were asked for; the limit of iterations came before model 2" in known_first(run_folder)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (ValidationFacts(resolution_A=12.34), "Resolution 12.3 Å (full period): there the Fourier shell"),
        (ValidationFacts(resolution_A=12.34, reaches_edge=True), "Resolution 12.3 Å or better (full period)"),
        (ValidationFacts(resolution_A=None), "No resolution can be claimed"),
    ],
)
def test_a_validation_without_a_sentence_still_makes_a_claim(facts: ValidationFacts, words: str) -> None:
    assert claim(facts).startswith(words)


def test_what_was_imposed_simulated_or_cut_off_is_said(run_folder: Path) -> None:
    said = known_first(run_folder)
    assert "The frames are simulated." in said
    assert "The symmetry I was imposed on the intensity" in said
    assert "The limit of 4 iterations was reached before the end" in said
    assert "60 frames are few" in said
    assert "changed" not in said


def test_given_orientations_are_told_of_runs_that_had_another_name_for_them(run_folder: Path) -> None:
    earlier = 'known_poses_column = "truth_orientation"'
    change_settings(run_folder, 'known_orientations_column = ""', earlier)
    said = gather(run_folder).known_orientations
    assert said == "Known orientations were given, not found: known_orientations_column = truth_orientation."


def test_known_orientations_and_given_models_come_first(run_folder: Path, edit: Callable[..., None]) -> None:
    change_settings(run_folder, "[emc]", '[emc]\nknown_orientations = "truth"\nstart_file = "model.mrc"')
    edit(run_folder / "run.json", files={"start_file": "1234", "background_file": "5678", "hits_file": "9"})
    lines = known_first(run_folder).splitlines()
    assert "emc.known_orientations = truth" in lines[0]
    assert "emc.start_file = model.mrc" in lines[1]
    assert "hits_file" in lines[2]
    assert not any("background_file" in line for line in lines)


def test_a_run_under_way_stopped_or_failed_is_not_taken_for_a_result(bare_folder: Path) -> None:
    log = bare_folder / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    steps = [line for line in lines if '"event":"finished"' not in line]
    for last, words in {
        "": "has not finished; this is its state after 4 iterations",
        '{"event":"stopped","iteration":4}\n': "was stopped after 4 iterations",
        '{"event":"failed","reason":"the disk is full"}\n': "failed after 4 iterations: The disk is full.",
    }.items():
        log.write_text("".join(steps) + last)
        assert words in known_first(bare_folder)


def test_edited_settings_are_noticed(run_folder: Path) -> None:
    change_settings(run_folder, "oversampling = 4.0", "oversampling = 3.0")
    assert "settings.toml was changed" in known_first(run_folder)
    change_settings(run_folder, "oversampling = 3.0", "oversampling = 4.0")
    change_settings(run_folder, "iterations = 4", "iterations = 9")  # changes no result
    assert "settings.toml was changed" not in known_first(run_folder)


def test_a_density_or_validation_of_an_earlier_run_is_noticed(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    edit(run_folder / "validation" / "validation.json", iteration=3)
    assert "since it was validated" in known_first(run_folder)
    edit(run_folder / "validation" / "validation.json", iteration=4, run_id="another")
    assert "since it was validated" in known_first(run_folder)
    phased: dict[str, Any] = json.loads((run_folder / "phasing.json").read_text())
    assert "since it was phased" not in known_first(run_folder)
    edit(run_folder / "phasing.json", intensity={**phased["intensity"], "iteration": 2})
    assert "since it was phased" in known_first(run_folder)


def test_a_symmetry_of_the_density_alone_is_said(bare_folder: Path) -> None:
    change_settings(bare_folder, 'symmetry = "I"', 'symmetry = "C1"')
    said = unusual(gather(bare_folder), PhasingFacts(settings={"symmetry": "D5"}), None)
    assert "The symmetry D5 was imposed on the density, not found." in said


def test_a_symmetry_that_was_found_is_told_as_one(bare_folder: Path) -> None:
    given = "The symmetry I was imposed on the intensity, not found."
    assert given in unusual(gather(bare_folder), None, None)
    change_settings(bare_folder, 'symmetry = "I"', 'symmetry = "auto"')
    said = " ".join(unusual(gather(bare_folder), None, None))  # its steps tell the symmetry of the models
    assert "The symmetry I was found in the first intensity, not contradicted by frames" in said
    assert given not in said


def test_a_model_that_foretells_nothing_is_called_noise(bare_folder: Path) -> None:
    log = bare_folder / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for gain, is_noise in ((-0.5, True), (0.0, True), (2.0, False), (None, False)):
        for line in lines:
            line["sentinel_gain_nats"] = gain
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert ("nothing but noise" in known_first(bare_folder)) == is_noise


@pytest.mark.parametrize(("n_out", "is_first"), [(0, False), (3, False), (35, True)])
def test_frames_that_were_left_out_are_in_the_headline(bare_folder: Path, n_out: int, is_first: bool) -> None:
    columns = read_orientations(bare_folder / "orientations.h5")
    columns["model"] = np.where(np.arange(60) < n_out, -1, 0)
    write_orientations(bare_folder / "orientations.h5", columns)
    headline = str(draw_opening(gather(bare_folder), "", []))
    assert f"from {60 - n_out} of 60 diffraction snapshots" in headline or not n_out
    assert "from 60 diffraction snapshots" in headline or n_out
    assert ("35 of 60 frames (58 %) were left out" in known_first(bare_folder)) == is_first
    said, _ = methods(gather(bare_folder), None, None)
    assert any("patterns" in words and "were left out" in words for words in said) == bool(n_out)


def test_a_density_that_does_not_fit_is_told_before_the_claim(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    doubt = "Amplitudes that phasing had not seen are predicted no better than by the mean of each shell."
    edit(run_folder / "phasing.json", remarks=["Harmless.", doubt])
    edit(run_folder / "validation/validation.json", remarks=[f"half_2: {doubt}"])
    said = known_first(run_folder)
    assert f"The density: {doubt}" in said
    assert f"Half set 2: {doubt}" in said
    assert "Harmless" not in said


def test_a_run_that_does_not_show_what_its_halves_agree_on_is_told_everywhere(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    file = run_folder / "validation/validation.json"
    assert "do not trust" not in known_first(run_folder)
    whole = json.loads(file.read_text())["whole"]
    edit(file, whole={**whole, "agrees_to_A": None})
    assert known_first(run_folder).startswith("The run of all frames does not show what its halves agree on")
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts(evidence.validation.value)
    assert "agree with them to</" in (drawn := str(draw_trust(evidence, facts, None)))
    assert ">nothing<" in drawn
    said, _ = methods(evidence, None, facts)
    assert any("shows other speckles" in words for words in said)


DOUBT = (
    "The claim does not hold for the density of the run, which agrees with those of its halves only to "
    "86.4 A: phase the run again (phase --restart, with another --seed or more --starts), then validate it "
    "again."
)


def with_density(
    edit: Callable[..., None], folder: Path, agrees_to_A: float | None, verdict: str, *doubts: str
) -> None:
    """Let the validation of a run tell of its density."""
    file = folder / "validation/validation.json"
    statement = " ".join([json.loads(file.read_text())["statement"], *doubts])
    density = {
        "half": 1, "q_inv_A": [0.0, 0.01], "correlation": [1.0, 0.9], "agrees_to_A": agrees_to_A,
        "verdict": verdict,
    }  # fmt: skip
    edit(file, density=density, doubts=list(doubts), statement=statement)


def test_a_density_that_is_not_that_of_its_halves_is_told_before_the_picture(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    with_density(edit, run_folder, 86.4, "does not hold", DOUBT)
    first = known_first(run_folder).splitlines()[0]
    assert first == DOUBT.replace("86.4 A", "86.4 Å")
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts(evidence.validation.value)
    said = claim(facts)
    assert said.startswith("Two independent halves of 27 and 27 frames agree")
    assert said.endswith(first)
    drawn = str(draw_trust(evidence, facts, PhasingFacts()))
    assert "agrees with those of the half sets to</" in drawn
    assert ">86.4 Å (FSC 0.5)<" in drawn
    assert "the run and a half" in drawn
    sentences, _ = methods(evidence, None, facts)
    assert any("a half set to 86.4 Å (correlation 0.5): the resolution does not" in one for one in sentences)


def test_a_density_that_is_that_of_its_halves_is_no_warning(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    with_density(edit, run_folder, 65.0, "holds")
    assert "density of the run" not in known_first(run_folder)
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts(evidence.validation.value)
    assert ">65 Å (FSC 0.5)<" in str(draw_trust(evidence, facts, PhasingFacts()))
    sentences, _ = methods(evidence, None, facts)
    assert any("a half set to 65 Å (correlation 0.5)." in one for one in sentences)
    with_density(edit, run_folder, None, "does not hold")
    evidence = gather(run_folder)
    facts = validation_facts(evidence.validation.value or {})
    assert ">nothing<" in str(draw_trust(evidence, facts, PhasingFacts()))


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("holds", "(correlation 0.5)."),
        ("holds to its end", "(correlation 0.5), where it ends: the resolution applies to it only to there."),
        ("does not hold", "(correlation 0.5): the resolution does not apply to it."),
    ],
)
def test_the_methods_tell_the_verdict_of_the_density_that_they_name(
    run_folder: Path, edit: Callable[..., None], verdict: str, words: str
) -> None:
    with_density(edit, run_folder, 86.4, verdict, DOUBT.replace("the run,", "state 2,"))
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    sentences, _ = methods(evidence, None, validation_facts(evidence.validation.value))
    assert any(one.endswith(f"agrees with that of a half set to 86.4 Å {words}") for one in sentences)


def test_a_validation_that_did_not_compare_the_density_is_read_and_told(
    run_folder: Path,
) -> None:
    file = run_folder / "validation/validation.json"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({key: told[key] for key in told if key not in ("density", "doubts")}))
    assert "density of the run" not in known_first(run_folder)
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts(evidence.validation.value)
    assert claim(facts).endswith(").")
    words = "not compared: run orienteer validate again"
    assert words in str(draw_trust(evidence, facts, PhasingFacts()))
    assert words not in str(draw_trust(evidence, facts, None))  # there is no density
    assert not any("density of all patterns" in one for one in methods(evidence, None, facts)[0])


def test_nobody_is_sent_to_compare_a_density_of_an_earlier_intensity(run_folder: Path) -> None:
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts({**evidence.validation.value, "density": None})
    for phasing in (PhasingFacts(run_id="another"), PhasingFacts(iteration=3)):
        drawn = str(draw_trust(evidence, facts, phasing))
        assert ">not compared<" in drawn
        assert "run orienteer validate again" not in drawn


def test_halves_that_are_alike_on_too_few_speckles_are_not_called_round(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    file = run_folder / "validation/validation.json"
    edit(file, resolution_A=None, speckles_A=None, too_few_speckles=True)
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    facts = validation_facts(evidence.validation.value)
    drawn = str(draw_trust(evidence, facts, None))
    assert ", on too few speckles" in drawn
    assert "radial mean only" not in drawn
    said, _ = methods(evidence, None, facts)
    assert any("agree, but on too few speckles to rule out chance" in words for words in said)


def test_a_correlation_beyond_the_claim_is_not_quoted_alone(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    file = run_folder / "validation/validation.json"
    edit(file, resolution_A=200.0, resolutions_A={"0.143": 12.0, "0.5": 150.0, "half-bit": 190.0})
    evidence = gather(run_folder)
    assert evidence.validation.value is not None
    drawn = str(draw_trust(evidence, validation_facts(evidence.validation.value), None))
    for words in ("12 Å or better (edge of the data)", "150 Å"):
        assert f">{words}, beyond 200 Å in the radial mean only<" in drawn
    assert ">190 Å<" in drawn


def test_halves_with_known_orientations_are_not_said_to_share_nothing(run_folder: Path) -> None:
    def caption() -> str:
        evidence = gather(run_folder)
        assert evidence.validation.value is not None
        return str(draw_trust(evidence, validation_facts(evidence.validation.value), None))

    assert "The two densities share no frame, no start and no support" in caption()
    change_settings(
        run_folder, 'known_orientations_column = ""', 'known_orientations_column = "truth_orientation"'
    )
    assert "by itself" not in caption()
    assert "but the orientations of both were given" in caption()


def test_halves_that_agree_on_no_structure_of_the_particle_are_told(bare_folder: Path) -> None:
    log = bare_folder / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for agrees_to_A, is_coarse in ((101.0, True), (99.0, False), (None, False)):
        for line in lines:
            line["agrees_to_A"] = agrees_to_A
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert ("agree only to 101 Å, of a particle of 200 Å" in known_first(bare_folder)) == is_coarse
