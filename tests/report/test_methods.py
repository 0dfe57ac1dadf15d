"""The paragraph on the methods says what was done, and nothing that was not."""

import json
from collections.abc import Callable
from pathlib import Path

from orienteer.report import references
from orienteer.report.evidence import gather
from orienteer.report.methods import _phasing, methods
from orienteer.report.phasing_facts import PhasingFacts, phasing_facts
from orienteer.report.references import draw_references
from orienteer.report.validation_facts import ValidationFacts, validation_facts


def test_the_paragraph_holds_the_facts_of_the_run(run_folder: Path) -> None:
    evidence = gather(run_folder)
    assert evidence.phasing.value is not None
    assert evidence.validation.value is not None
    phasing, validation = phasing_facts(evidence.phasing.value), validation_facts(evidence.validation.value)
    sentences, cited = methods(evidence, phasing, validation)
    said = " ".join(sentences)
    for words in (
        "60 simulated diffraction patterns of single particles at a wavelength of 2.5 Å (4.959 keV)",
        "256 of its 256 pixels",
        "(Loh & Elser 2009) from a random start (seed 7), without any knowledge of the orientations",
        "The symmetry I was imposed.",
        "The fluence of every pattern was estimated",
        "5 % of the patterns were oriented but never merged.",
        "The last of 4 iterations",
        "from 3 random starts (seed 7) by relaxed averaged alternating reflections (Luke 2005) and error "
        "reduction (Fienup 1982)",
        "The volume of the support was given as 2,000,000 Å³.",
        "two half sets by a hash of their event",
        "randomising phases (Chen et al. 2013)",
    ):
        assert words in said, words
    assert "No symmetry" not in said
    assert "limit of 4 iterations" in said
    assert cited[0] == references.EMC
    for reference in set(cited):
        assert reference.short.partition(" ")[0] in said or reference in (
            references.GOLD,
            references.HALF_BIT,
        )


def test_a_symmetry_that_was_found_is_told_as_one(bare_folder: Path) -> None:
    settings = bare_folder / "settings.toml"
    settings.write_text(settings.read_text().replace('symmetry = "I"', 'symmetry = "auto"'))
    said = " ".join(methods(gather(bare_folder), None, None)[0])
    assert "The symmetry I was found in the intensity of the first stage, tested on patterns that did" in said
    assert "The symmetry I was imposed" not in said
    assert "No symmetry" not in said


def test_what_was_not_done_is_not_said(bare_folder: Path) -> None:
    sentences, cited = methods(gather(bare_folder), None, None)
    said = " ".join(sentences)
    assert "phased" not in said
    assert "Fourier shell" not in said
    assert cited == [references.EMC]


def test_halves_that_agree_nowhere_are_no_resolution(bare_folder: Path) -> None:
    sentences, _ = methods(gather(bare_folder), PhasingFacts(), ValidationFacts())
    assert "so no resolution is claimed" in " ".join(sentences)


def test_a_paper_stands_in_the_list_once() -> None:
    drawn = draw_references([references.EMC, references.FSC, references.EMC])
    assert drawn.count("<li>") == 2
    assert 'href="https://doi.org/10.1103/PhysRevE.80.026705"' in drawn


def test_only_a_mask_that_was_corrected_for_is_said_to_be(
    run_folder: Path, edit: Callable[..., None]
) -> None:
    file = run_folder / "validation/validation.json"
    curves = json.loads(file.read_text())["fsc"]
    for start, is_corrected in ((None, False), (0.01, True)):
        edit(file, fsc={**curves, "random_from_inv_A": start})
        evidence = gather(run_folder)
        facts = validation_facts(evidence.validation.value)
        assert ("randomised" in facts.fsc) == ("corrected" in facts.fsc) == is_corrected
        assert "masked" in facts.fsc
        said, _ = methods(evidence, None, facts)
        assert any("randomising phases" in words for words in said) == is_corrected


def test_a_transfer_that_reaches_the_edge_falls_below_nothing() -> None:
    for reaches, words in ((True, "stays above 1/e up to the edge"), (False, "falls below 1/e at")):
        said, _ = _phasing(PhasingFacts(prtf_A=20.0, prtf_reaches_edge=reaches))
        assert any(words in one for one in said)
