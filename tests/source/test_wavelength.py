"""The wavelength of a data set: one answer for all who ask, whatever some events do not know."""

import numpy as np
import pytest

import orienteer
from orienteer.detector.geometry_file import GeometryFile
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.hits.search import HitSearch
from orienteer.hits.settings import HitSettings
from orienteer.live.looking import Looking, looking_of
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.run.settings import Settings
from orienteer.source.geometry import with_geometry, with_wavelength
from orienteer.source.patterns import Patterns
from orienteer.source.spinifel import SpinifelSource, Writer
from orienteer.source.summary import summarise
from orienteer.source.wavelength import WAVELENGTH, known_wavelengths, usual_wavelength

DETECTOR = square_detector(16, pixel_size_m=0.001, distance_m=0.1)
TOLD = np.array([2.0, np.nan, 2.2])
PATTERNS = Patterns(
    np.random.default_rng(1).poisson(0.5, (3, 256)).astype(np.int32), columns={WAVELENGTH: TOLD}
)


def saying(wavelengths_A) -> Patterns:
    return Patterns(PATTERNS.frames, columns={WAVELENGTH: np.array(wavelengths_A, dtype=np.float64)})


def source(patterns: Patterns = PATTERNS):
    return orienteer.open(patterns, geometry=DETECTOR)


def of_summary() -> float | None:
    return summarise(source(), source().batches()).wavelength_A


def of_reconstruction(patterns: Patterns = PATTERNS) -> float | None:
    return pixel_table(source(patterns)).wavelength_A


def of_search(patterns: Patterns = PATTERNS) -> float | None:
    analysis = HitSearch(source(patterns), HitSettings()).analysis
    return None if analysis is None else float(analysis.state()[WAVELENGTH][0])


def of_live(patterns: Patterns = PATTERNS) -> float | None:
    looking: Looking = looking_of(Settings(), DETECTOR.n_pixels, DETECTOR)
    looking.analyse(patterns)
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


@pytest.mark.parametrize("asked", [of_reconstruction, of_search, of_live])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        (
            2.7e-10,
            r"2\.7e-10 A, .*\n2\.7e-10 m are 2\.7 A\. Multiply the column wavelength_A by 1e10, or give",
        ),
        (
            4600.0,
            r"4600 A, .*\n4600 eV are a wavelength of 2\.695 A\. Correct the column wavelength_A, or give",
        ),
        (2.7e-4, r"0\.00027 A, .*\nCorrect the column wavelength_A, or give --wavelength-A"),
    ],
)
def test_a_column_in_another_unit_is_refused_with_what_was_meant(asked, wrong: float, meant: str) -> None:
    with pytest.raises(OrienteerError, match=meant):
        asked(saying([wrong, wrong, wrong]))


def test_a_single_event_that_is_wrong_does_not_stop_the_others() -> None:
    assert of_live(saying([2.0, 2.0, 4600.0])) == 2.0


def test_another_wavelength_replaces_a_column_in_another_unit() -> None:
    with pytest.warns(UserWarning, match=r"say a wavelength of 2\.7e-10 A; 2\.7 A is used"):
        replaced = with_wavelength(source(saying([2.7e-10] * 3)), 2.7)
    assert pixel_table(replaced).wavelength_A == 2.7


@pytest.mark.parametrize("nothing", [0.0, np.nan, -1.0, np.inf])
def test_the_reconstruction_tells_how_many_frames_do_not_say_their_wavelength(nothing: float) -> None:
    (remark,) = pixel_table(source(saying([2.7, nothing, nothing]))).remarks
    assert remark.startswith("2 of 3 frames have no wavelength of their own")
    assert "is used, 2.7 A" in remark
    assert pixel_table(source(saying([2.7, 2.7, 2.7]))).remarks == ()


@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_the_wavelength_of_a_geometry_file_serves_events_without_one(nothing: float) -> None:
    opened = with_geometry(source(saying([2.0, nothing, 2.2])), GeometryFile(DETECTOR, wavelength_A=2.1))
    assert opened.read_columns([WAVELENGTH])[WAVELENGTH].tolist() == [2.0, 2.1, 2.2]
