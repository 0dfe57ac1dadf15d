"""The analysis of hits as they come: batches do not matter, and it goes on from a state."""

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch
from orienteer.hits.analysis import HitAnalysis
from orienteer.hits.kinds import HitKind
from orienteer.hits.settings import HitSettings
from orienteer.hits.sphere import sphere_intensity
from orienteer.source.patterns import Patterns

WAVELENGTH_A = 2.7
DETECTOR = square_detector(48, pixel_size_m=0.00167, distance_m=0.2)
BACKGROUND = np.full(48 * 48, 0.1)


def droplets(n: int, seed: int) -> Patterns:
    """Balls of about 130 A, one in five much smaller."""
    draw = np.random.default_rng(seed)
    q = DETECTOR.q_length_inv_A(WAVELENGTH_A)
    size = np.where(np.arange(n) % 5 == 0, 60.0, 130 * (1 + 0.03 * draw.standard_normal(n)))
    shape = np.stack([sphere_intensity(q, one) for one in size])
    signal = 400 * draw.uniform(0.5, 2, (n, 1)) * shape / shape.sum(axis=1, keepdims=True)
    return Patterns(draw.poisson(signal + BACKGROUND).astype(np.uint16))


HITS = droplets(700, 1)


def looked_at(sizes: list[int], stop: int = 0, n_hits: int = 700) -> dict[str, np.ndarray]:
    """So many hits in batches of these sizes in turn; after ``stop`` batches another analysis goes on."""
    analysis = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
    parts, first, n = [], 0, 0
    while first < n_hits:
        last = min(first + sizes[n % len(sizes)], n_hits)
        parts.append(analysis.look(HITS[first:last], BACKGROUND))
        first, n = last, n + 1
        if n == stop:
            state = {name: array.copy() for name, array in analysis.state().items()}
            analysis = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
            analysis.restore(state)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_batches_and_restarts_change_nothing() -> None:
    whole = looked_at([400], n_hits=400)
    assert (whole["kind"] == HitKind.SINGLE).sum() > 100
    for sizes, stop in (([1, 64, 13], 0), ([50], 1), ([50], 6)):
        other = looked_at(sizes, stop, n_hits=400)
        for name, column in whole.items():
            np.testing.assert_array_equal(other[name], column, err_msg=name)


def test_what_an_earlier_version_has_learned_is_learned_anew_from_the_hits_it_knew() -> None:
    analysis = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
    analysis.look(HITS[:400], BACKGROUND)
    old = {name: array for name, array in analysis.state().items() if not name.startswith("near_")}
    old |= {"limits": old["limits"][:3], "numbers": old["numbers"][1:]}
    later = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
    later.restore(old)
    assert (later.look(HITS[400:], BACKGROUND)["kind"] == HitKind.SINGLE).sum() > 150


def test_smaller_balls_are_junk_and_smaller() -> None:
    columns = looked_at([100])
    small = np.arange(700) % 5 == 0
    assert (columns["kind"][250:][small[250:]] == HitKind.JUNK).mean() > 0.95
    assert (columns["kind"][250:][~small[250:]] == HitKind.SINGLE).mean() > 0.95
    assert abs(np.median(columns["size_A"][small]) - 60) < 3
    assert abs(np.median(columns["size_A"][~small]) - 130) < 3


def test_lists_of_photons_give_the_same_as_frames() -> None:
    of_frames = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A).look(HITS, BACKGROUND)
    of_lists = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A).look(Patterns(HITS.sparse()), BACKGROUND)
    for name, column in of_frames.items():
        np.testing.assert_array_equal(of_lists[name], column, err_msg=name)


def test_kinds_can_be_left_open() -> None:
    columns = HitAnalysis(HitSettings(judge_kinds=False), DETECTOR, WAVELENGTH_A).look(HITS, BACKGROUND)
    assert (columns["kind"] == HitKind.UNSURE).all()


def test_no_hits_and_no_background_are_no_error() -> None:
    analysis = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
    assert analysis.look(HITS[:0], None)["kind"].shape == (0,)
    assert analysis.look(HITS[:3], None)["size_A"].shape == (3,)


def test_a_background_of_another_detector_is_refused() -> None:
    with pytest.raises(GeometryMismatch, match="the background has shape"):
        HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A).look(HITS[:3], np.zeros(10))


def test_the_first_hits_can_be_judged_again_by_what_was_learned_since() -> None:
    analysis = HitAnalysis(HitSettings(), DETECTOR, WAVELENGTH_A)
    assert (analysis.look(HITS, BACKGROUND)["kind"][:60] == HitKind.UNSURE).all()
    before = analysis.state()
    again = analysis.look(HITS[:60], BACKGROUND, learns=False)
    assert (again["kind"] == HitKind.SINGLE).sum() > 40
    for name, array in analysis.state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
