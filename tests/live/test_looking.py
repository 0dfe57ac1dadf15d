"""What a worker does with frames, with the real calibration and hit finding, wherever they are computed."""

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.live.looking import Looking, looking_of
from orienteer.run.settings import Settings
from orienteer.source.patterns import Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def make_shots(n: int = 900) -> Patterns:
    """Shots of few photons; every ninth has many more around its middle."""
    draw = np.random.default_rng(1)
    frames = draw.poisson(0.2, (n, 24, 24))
    frames[::9, 8:16, 8:16] += draw.poisson(2, (n // 9, 8, 8))
    columns = {"wavelength_A": np.linspace(1.98, 2.02, n)}
    return Patterns(frames.reshape(n, -1).astype(np.uint16), np.arange(n, dtype=np.uint64), columns)


def look_at(
    looking: Looking, shots: Patterns
) -> tuple[np.ndarray, list[Patterns], list[dict[str, np.ndarray]]]:
    is_hit, hits, analysed = [], [], []
    for first in range(0, len(shots), 150):
        columns, found = looking.look(shots[first : first + 150])
        is_hit.append(columns["is_hit"])
        hits.append(found)
        analysed.append(looking.analyse(found))
    return np.concatenate(is_hit), hits, analysed


@pytest.mark.parametrize("device", DEVICES)
def test_hits_are_found_and_sized_with_their_photons(device: str) -> None:
    shots = make_shots()
    detector = square_detector(24, distance_m=0.1, edge_resolution_A=20.0, wavelength_A=2.0)
    is_hit, hits, analysed = look_at(looking_of(Settings(), 576, detector, device), shots)
    expected = np.arange(900) % 9 == 0
    assert np.mean(is_hit[150:] == expected[150:]) > 0.99
    found = np.concatenate([part.dense() for part in hits])
    np.testing.assert_array_equal(found, shots.frames[is_hit])
    assert all(not part.is_on_gpu for part in hits)
    assert {"size_A", "kind", "brightness"} <= set(analysed[-1])


def test_what_was_learned_goes_on_from_its_state() -> None:
    shots = make_shots()
    detector = square_detector(24, distance_m=0.1, edge_resolution_A=20.0, wavelength_A=2.0)
    whole, _, analysed = look_at(looking_of(Settings(), 576, detector), shots)
    first = looking_of(Settings(), 576, detector)
    look_at(first, shots[:450])
    second = looking_of(Settings(), 576, detector)
    second.restore(first.state())
    rest, _, analysed_rest = look_at(second, shots[450:])
    np.testing.assert_array_equal(rest, whole[450:])
    np.testing.assert_array_equal(analysed_rest[-1]["size_A"], analysed[-1]["size_A"])


def test_without_a_geometry_hits_are_found_but_not_sized() -> None:
    is_hit, _, analysed = look_at(looking_of(Settings(), 576, None), make_shots())
    assert is_hit.sum() > 50
    assert not any(analysed)


def test_signal_that_is_no_photons_is_refused_in_words() -> None:
    settings = Settings(calibration={"count_photons": False})
    shots = Patterns(make_shots(90).frames.astype(np.float32))
    with pytest.raises(OrienteerError, match="hits are kept as photons"):
        look_at(looking_of(settings, 576, None), shots)
