"""The wavelength of a data set: one answer for all who ask, whatever some events do not know."""

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.hits.search import HitSearch
from orienteer.hits.settings import HitSettings
from orienteer.live.looking import Looking, looking_of
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.run.settings import Settings
from orienteer.source.geometry import with_wavelength
from orienteer.source.patterns import Patterns
from orienteer.source.spinifel import SpinifelSource, Writer
from orienteer.source.summary import summarise
from orienteer.source.wavelength import WAVELENGTH, known_wavelengths, usual_wavelength

DETECTOR = square_detector(16, pixel_size_m=0.001, distance_m=0.1)
TOLD = np.array([2.0, np.nan, 2.2])
PATTERNS = Patterns(
    np.random.default_rng(1).poisson(0.5, (3, 256)).astype(np.int32), columns={WAVELENGTH: TOLD}
)


def source():
    return orienteer.open(PATTERNS, geometry=DETECTOR)


def of_summary() -> float | None:
    return summarise(source(), source().batches()).wavelength_A


def of_reconstruction() -> float | None:
    return pixel_table(source()).wavelength_A


def of_search() -> float | None:
    analysis = HitSearch(source(), HitSettings()).analysis
    return None if analysis is None else float(analysis.state()[WAVELENGTH][0])


def of_live() -> float | None:
    looking: Looking = looking_of(Settings(), DETECTOR.n_pixels, DETECTOR)
    looking.analyse(PATTERNS)
    return float(looking.state()["analysis"][WAVELENGTH][0])


@pytest.mark.parametrize("asked", [of_summary, of_reconstruction, of_search, of_live])
def test_an_event_that_does_not_know_its_wavelength_does_not_count(asked) -> None:
    assert asked() == pytest.approx(2.1)


def test_a_spinifel_file_gets_the_wavelength_that_is_known(tmp_path) -> None:
    with Writer(tmp_path / "a.h5", detector=DETECTOR) as writer:
        writer.append(PATTERNS)
    with SpinifelSource(tmp_path / "a.h5") as written:
        assert written.wavelength_A == pytest.approx(2.1)


def test_only_what_the_data_say_is_told_beside_another_wavelength() -> None:
    silent = Patterns(PATTERNS.frames, columns={WAVELENGTH: np.array([0.0, np.nan, 2.2])})
    with pytest.warns(UserWarning, match=r"say a wavelength of 2\.2 A; 3 A is used"):
        with_wavelength(orienteer.open(silent, geometry=DETECTOR), 3.0)


@pytest.mark.parametrize("nothing", [None, [], [np.nan, 0.0, -1.0, np.inf]])
def test_where_no_event_says_a_wavelength_there_is_none(nothing) -> None:
    assert usual_wavelength(nothing) is None
    assert not len(known_wavelengths(nothing))
