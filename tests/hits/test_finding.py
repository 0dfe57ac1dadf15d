"""Hits among empty shots: on simulated streams whose truth the finder never sees."""

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.finding import BLOCK, HitFinder
from orienteer.hits.settings import HitSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def looked(finder, patterns, batch=100):
    parts = [finder.look(patterns[i : i + batch]) for i in range(0, len(patterns), batch)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def without_truth(patterns):
    columns = {name: c for name, c in patterns.columns.items() if not name.startswith("truth_")}
    return Patterns(patterns.frames, patterns.event_id, columns)


def counts(patterns):
    return patterns.dense().astype(np.uint16)


STREAMS = {
    "steady": {},
    "varying": {"background_jitter": 0.3, "fluence_jitter": 0.5, "background_slope": 0.5},
    "weak": {"photons_per_frame": 100.0, "background_photons": 100.0, "fluence_jitter": 0.3},
    "many hits": {"empty_fraction": 0.4, "background_jitter": 0.3},
    "few hits": {"empty_fraction": 0.97, "junk_fraction": 0.005, "multiple_fraction": 0.005},
}
OTHERS = pytest.mark.slow(
    reason="varying streams of no detector, and such streams of one, are searched every time"
)


@pytest.mark.parametrize(
    ("name", "geometry"),
    [
        *((name, "detector") for name in STREAMS),
        ("varying", "no detector"),
        *(pytest.param(name, "no detector", marks=OTHERS) for name in STREAMS if name != "varying"),
    ],
)
def test_particles_are_found_and_empty_shots_are_not(stream, name, geometry):
    experiment, patterns = stream(**STREAMS[name])
    kind = patterns.columns["truth_kind"]
    detector = experiment.detector if geometry == "detector" else None
    found = looked(HitFinder(HitSettings(), patterns.n_pixels, detector), without_truth(patterns))
    is_hit = found["is_hit"]
    assert is_hit[np.isin(kind, (ShotKind.HIT, ShotKind.MULTIPLE))].mean() > 0.97
    assert (kind[is_hit] == ShotKind.EMPTY).mean() < 0.02
    after = slice(HitSettings().warm_up_shots, None)
    assert is_hit[after][kind[after] == ShotKind.HIT].mean() > 0.995
    assert (kind[after][is_hit[after]] == ShotKind.EMPTY).sum() <= 1 + 0.005 * is_hit.sum()
    np.testing.assert_array_equal(found["photons"], patterns.photons)
    assert found["n_lit"][kind == ShotKind.HIT].mean() > found["n_lit"][kind == ShotKind.EMPTY].mean()


def test_every_form_of_frames_gives_the_same_hits(stream):
    experiment, patterns = stream()

    def looked_at(frames):
        finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
        return looked(finder, Patterns(frames), 256), finder.background

    expected, background = looked_at(patterns[:1200].sparse())
    assert expected["is_hit"].sum() > 80
    assert background.sum() > 280
    for form in ("uint8", "uint16", "int32", "float32"):
        found, of_form = looked_at(counts(patterns[:1200]).astype(form))
        np.testing.assert_array_equal(found["is_hit"], expected["is_hit"], err_msg=form)
        for name in ("photons", "n_lit", "hit_score"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-3, err_msg=form)
        np.testing.assert_allclose(of_form, background, rtol=1e-4)


@pytest.mark.gpu
def test_the_gpu_finds_the_same_hits(stream):
    experiment, patterns = stream()
    frames = Patterns(counts(patterns))
    host = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    device = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    expected, found = looked(host, frames), looked(device, frames.to("cuda"))
    np.testing.assert_array_equal(found["is_hit"], expected["is_hit"])
    np.testing.assert_allclose(found["hit_score"], expected["hit_score"], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(device.powder.hits, host.powder.hits)


def test_results_do_not_depend_on_batches_once_the_warm_up_is_over(stream):
    experiment, patterns = stream()
    first, rest = patterns[:512], patterns[512:]
    tables = []
    for batch in (1, 77, 3000):
        finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
        finder.look(first)
        tables.append(looked(finder, rest if batch > 1 else rest[:700], batch))
    for name in tables[0]:
        np.testing.assert_array_equal(tables[0][name], tables[2][name][:700])
        np.testing.assert_array_equal(tables[1][name], tables[2][name])


# While the finder warms up its state holds the frames, of which there are two forms.
@pytest.mark.parametrize(
    ("stop", "form"),
    [*((stop, "lists") for stop in (0, 20, 300, 512, 900, 1024)), (20, "float32"), (300, "float32")],
)
def test_a_finder_goes_on_from_its_state_as_if_never_stopped(stream, stop, form):
    experiment, patterns = stream()
    patterns = patterns[: stop + 1000]
    patterns = Patterns(patterns.sparse() if form == "lists" else counts(patterns).astype(form))

    def new():
        return HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)

    whole, begun, resumed = new(), new(), new()
    for finder in (whole, begun):
        looked(finder, patterns[:stop]) if stop else None
    state = begun.state()
    looked(begun, patterns[stop : stop + 200])  # what happens later does not change a state
    resumed.restore({name: array.copy() for name, array in state.items()})
    expected, found = (looked(finder, patterns[stop:]) for finder in (whole, resumed))
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(resumed.background, whole.background)
    np.testing.assert_array_equal(resumed.powder.empty, whole.powder.empty)
    assert resumed.n_seen == whole.n_seen == stop + 1000


LIKE_ANOTHER = pytest.mark.slow(
    reason="a background that changes slowly, and one that does so at once, is followed every time"
)


@pytest.mark.parametrize(
    "change",
    [
        "changes its form",
        "doubles at once",
        *(pytest.param(change, marks=LIKE_ANOTHER) for change in ("rises", "halves at once")),
    ],
)
def test_a_background_that_changes_is_followed(stream, draw, change):
    experiment, patterns = stream(background_photons=0.0)
    patterns = patterns[:2100]
    hits = counts(patterns)
    n, P = hits.shape
    t, x = np.arange(n) / n, np.linspace(-1, 1, P)
    strength = {
        "rises": 1 + t[:, None] + 0 * x,
        "changes its form": 1 + 0.8 * t[:, None] * x,
        "doubles at once": 1.0 + (t > 0.4)[:, None] + 0 * x,
        "halves at once": 1.0 - 0.5 * (t > 0.4)[:, None] + 0 * x,
    }[change]
    frames = hits + draw.poisson(300 / P * strength)
    kind = patterns.columns["truth_kind"]
    finder = HitFinder(HitSettings(memory_shots=500), P, experiment.detector)
    is_hit = looked(finder, Patterns(frames))["is_hit"]
    late = slice(2 * n // 3, None)
    assert is_hit[late][kind[late] == ShotKind.HIT].mean() > 0.99
    assert (is_hit[late] & (kind[late] == ShotKind.EMPTY)).sum() <= 2
    wanted = 300 / P * strength[-500:].mean(axis=0)
    halves = [(finder.background[half].mean(), wanted[half].mean()) for half in (x < 0, x > 0)]
    np.testing.assert_allclose(*zip(*halves, strict=True), rtol=0.2)


def test_the_background_is_that_of_empty_shots_and_hits_do_not_leak_into_it(stream):
    experiment, patterns = stream()
    finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    looked(finder, patterns)
    assert finder.background.sum() == pytest.approx(300, rel=0.01)
    # The background is flat; the hits are 100 times as bright in the middle.
    radius = np.linalg.norm(experiment.detector.positions_m[:, :2], axis=1)
    middle = radius < np.quantile(radius, 0.05)
    expected = experiment.background[middle].sum()
    assert finder.background[middle].sum() == pytest.approx(expected, rel=0.05)


def test_powder_sums_hold_every_shot_once(stream):
    experiment, patterns = stream()
    finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    is_hit = looked(finder, patterns)["is_hit"]
    K = counts(patterns).astype(np.int64)
    np.testing.assert_array_equal(finder.powder.hits, K[is_hit].sum(axis=0))
    np.testing.assert_array_equal(finder.powder.empty, K[~is_hit].sum(axis=0))
    assert (finder.powder.n_hits, finder.powder.n_empty) == (is_hit.sum(), (~is_hit).sum())


def test_hits_that_come_late_are_found_in_spite_of_a_varying_background(stream):
    """No hit is there to learn from during the warm-up; then what is known of particles is a guess."""
    experiment, patterns = stream(background_jitter=0.3)
    kind = patterns.columns["truth_kind"]
    empty, rest = patterns[kind == ShotKind.EMPTY], patterns[1200:]
    finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    assert looked(finder, empty[:1000])["is_hit"].sum() <= 1
    is_hit = looked(finder, rest)["is_hit"]
    assert is_hit[rest.columns["truth_kind"] == ShotKind.HIT].mean() > 0.97
    assert (is_hit & (rest.columns["truth_kind"] == ShotKind.EMPTY)).sum() <= 4


def test_nothing_is_found_where_nothing_is(draw):
    frames = draw.poisson(0.1, (4 * BLOCK, 900)).astype(np.uint8)
    found = looked(HitFinder(HitSettings(), 900), Patterns(frames))
    assert found["is_hit"].sum() <= 2
    assert found["hit_score"].std() == pytest.approx(1, abs=0.1)


def test_masked_pixels_count_nowhere(stream, draw):
    experiment, patterns = stream()
    hot = draw.random(patterns.n_pixels) < 0.05
    frames = counts(patterns)[:1500]
    frames[:, hot] = draw.integers(0, 60000, (1500, hot.sum()))
    detector = experiment.detector.with_mask(np.where(hot, PixelUse.NEVER, 0).astype(np.uint8))
    finder = HitFinder(HitSettings(), patterns.n_pixels, detector)
    found = looked(finder, Patterns(frames))
    kind = patterns.columns["truth_kind"][:1500]
    assert found["is_hit"][kind == ShotKind.HIT].mean() > 0.97
    np.testing.assert_array_equal(found["photons"], frames[:, ~hot].sum(axis=1))
    assert not finder.background[hot].any()


def test_hot_pixels_that_nobody_has_masked_do_not_hide_hits(stream, draw):
    experiment, patterns = stream()
    frames = counts(patterns)
    hot = draw.choice(patterns.n_pixels, 20, replace=False)
    frames[:, hot] += draw.poisson(50, (len(frames), 20)).astype(np.uint16)
    found = looked(HitFinder(HitSettings(), patterns.n_pixels, experiment.detector), Patterns(frames))
    kind = patterns.columns["truth_kind"]
    assert found["is_hit"][kind == ShotKind.HIT].mean() > 0.97
    assert found["is_hit"][kind == ShotKind.EMPTY].sum() < 10


def test_a_taught_background_tells_the_first_shot(stream, tmp_path):
    experiment, patterns = stream()
    kind = patterns.columns["truth_kind"]
    empty, others = patterns[kind == ShotKind.EMPTY], patterns[kind == ShotKind.HIT]
    with writer_for(tmp_path / "empty.h5", like=experiment) as writer:
        writer.append(empty[:800])
    settings = HitSettings(background=str(tmp_path / "empty.h5"))
    finder = HitFinder(settings, patterns.n_pixels, experiment.detector)
    # A stream of hits alone has no empty shots of its own to compare them with.
    assert looked(finder, others[:100], 1)["is_hit"].all()
    with pytest.raises(OrienteerError, match="before the first shot"):
        finder.teach_background(empty)


def test_a_threshold_that_was_asked_for_holds(stream):
    experiment, patterns = stream()
    finder = HitFinder(HitSettings(threshold=7.5), patterns.n_pixels, experiment.detector)
    found = looked(finder, patterns)
    assert finder.threshold == 7.5
    np.testing.assert_array_equal(found["is_hit"], found["hit_score"] >= np.float32(7.5))


def test_every_shot_is_a_hit_where_none_are_looked_for(stream):
    _, patterns = stream()
    found = HitFinder(HitSettings(find=False), patterns.n_pixels).look(patterns[:40])
    assert found["is_hit"].all()


def test_other_pixels_and_other_states_are_refused(stream):
    experiment, patterns = stream()
    finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    with pytest.raises(GeometryMismatch, match="9 pixels"):
        finder.look(Patterns(np.zeros((2, 9), int)))
    with pytest.raises(GeometryMismatch, match="9 pixels"):
        HitFinder(HitSettings(), 9, experiment.detector)
    with pytest.raises(OrienteerError, match="not that of a hit finder"):
        finder.restore(HitFinder(HitSettings(), 9).state())


def test_a_detector_without_a_used_pixel_is_refused(stream):
    experiment, patterns = stream()
    masked = np.full(patterns.n_pixels, PixelUse.NEVER, np.uint8)
    with pytest.raises(OrienteerError, match="every pixel"):
        HitFinder(HitSettings(), patterns.n_pixels, experiment.detector.with_mask(masked))


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_shots_without_a_single_photon_are_empty(dtype):
    finder = HitFinder(HitSettings(), 100)
    found = looked(finder, Patterns(np.zeros((1200, 100), dtype)))
    assert not found["is_hit"].any()
    assert np.isfinite(found["hit_score"]).all()


def test_one_photon_is_no_hit_where_most_shots_have_none(draw):
    found = looked(
        HitFinder(HitSettings(), 2500), Patterns(draw.poisson(2e-5, (3000, 2500)).astype(np.uint8))
    )
    assert found["photons"].sum() > 50
    assert found["is_hit"].sum() <= 3


def test_no_shots_have_columns_of_no_length(stream):
    experiment, patterns = stream()
    found = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector).look(patterns[:0])
    assert {name: len(column) for name, column in found.items()} == dict.fromkeys(
        ("photons", "n_lit", "hit_score", "is_hit"), 0
    )
