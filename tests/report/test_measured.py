"""What the report says about the data: the wavelength that was used, and what frames say themselves."""

import json
from pathlib import Path
from typing import Any

import pytest

from orienteer.report.evidence import gather
from orienteer.report.measured import draw_measured, wavelengths_in_words
from orienteer.report.methods import methods

SOME = {"used_A": 2.5, "mean_A": 2.51, "range_A": [2.4, 2.6], "frames_without": 0}


def evidence_with(folder: Path, **told: Any) -> Any:
    """The run, whose description says this about its data."""
    described = json.loads((folder / "run.json").read_text())
    described["input"] |= told
    (folder / "run.json").write_text(json.dumps(described))
    return gather(folder)


@pytest.mark.parametrize(
    ("wavelengths", "words"),
    [
        (
            SOME,
            "2.5 Å (4.959 keV); used for all frames, whose own are 2.4 to 2.6 Å, 2.51 Å on average",
        ),
        (
            SOME | {"range_A": [2.5, 2.5], "frames_without": 200},
            "2.5 Å (4.959 keV); 200 frames without a wavelength of their own",
        ),
        (SOME | {"range_A": [2.5, 2.5]}, "2.5 Å (4.959 keV)"),
        (None, "not the same for all frames"),  # an older run
    ],
)
def test_the_wavelength_is_the_one_that_was_used(run_folder: Path, wavelengths: Any, words: str) -> None:
    evidence = evidence_with(run_folder, wavelength_A="a hash of many", wavelengths=wavelengths)
    assert wavelengths_in_words(evidence) == words


def test_a_run_of_one_wavelength_says_it_as_before(run_folder: Path) -> None:
    assert wavelengths_in_words(gather(run_folder)) == "2.5 Å (4.959 keV)"


def test_the_edge_and_the_methods_follow_the_wavelength_that_was_used(run_folder: Path) -> None:
    evidence = evidence_with(run_folder, wavelength_A="a hash of many", wavelengths=SOME)
    assert "Å at the edge" in str(draw_measured(evidence))
    assert any("at a wavelength of 2.5 Å (4.959 keV)." in said for said in methods(evidence, None, None)[0])
