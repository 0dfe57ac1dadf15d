"""All shots of a file at once: everything is learned before the first shot is judged."""

import numpy as np

from orienteer.calibration.calibration import Calibration
from orienteer.calibration.constants import Constants
from orienteer.calibration.settings import CalibrationSettings
from orienteer.hits.finding import HitFinder
from orienteer.hits.search import HitSearch
from orienteer.hits.settings import HitSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.opening import open as open_source
from orienteer.source.patterns import Patterns


def joined(search):
    parts = list(search)
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
    return columns, [p.hits for p in parts]


def test_the_first_shots_are_told_as_well_as_the_last(stream):
    experiment, patterns = stream(background_jitter=0.3)
    kind = patterns.columns["truth_kind"]
    columns, hits = joined(HitSearch(experiment, HitSettings()))
    np.testing.assert_array_equal(columns["event_id"], patterns.event_id)
    assert columns["is_hit"][kind == ShotKind.HIT].mean() > 0.995
    assert columns["is_hit"][kind == ShotKind.EMPTY].sum() <= 3
    n_hits = columns["is_hit"].sum()
    assert sum(map(len, hits)) == n_hits
    ids = np.concatenate([part.event_id for part in hits])
    np.testing.assert_array_equal(ids, patterns.event_id[columns["is_hit"]])
    assert np.isnan(columns["size_A"][~columns["is_hit"]]).all()
    assert not columns["kind"][~columns["is_hit"]].any()
    assert (hits[0].columns["hit_score"] > 2).all()


def test_without_a_detector_hits_are_found_and_not_sized(stream):
    _, patterns = stream()
    frames = patterns[:1000].dense()
    search = HitSearch(open_source(frames), HitSettings())
    columns, _ = joined(search)
    assert search.analysis is None
    assert "size_A" not in columns
    kind = patterns.columns["truth_kind"][:1000]
    assert columns["is_hit"][kind == ShotKind.HIT].mean() > 0.99


def test_few_shots_are_looked_through_without_a_word(stream):
    _, patterns = stream()
    for n in (0, 1, 5, 40):
        source = open_source(Patterns(patterns[:n].frames, patterns[:n].event_id))
        parts = list(HitSearch(source, HitSettings()))
        assert sum(len(part.columns["is_hit"]) for part in parts) == n


def test_empty_shots_of_a_file_are_calibrated_as_the_others_are(stream, tmp_path):
    _, patterns = stream()
    kind = patterns.columns["truth_kind"]
    raw = 100 + 20 * patterns.dense().astype(np.uint16)
    np.save(tmp_path / "empty.npy", raw[kind == ShotKind.EMPTY][:400])
    calibrate = Calibration(
        CalibrationSettings(adu_per_photon=20),
        patterns.n_pixels,
        constants=Constants(np.full((1, patterns.n_pixels), 100, np.float32)),
    )
    settings = HitSettings(background=str(tmp_path / "empty.npy"))
    search = HitSearch(open_source(raw[kind == ShotKind.HIT][:40]), settings, calibrate)
    assert 290 < search.finder.background.sum() < 310
    columns, _ = joined(search)
    assert columns["is_hit"].all()


def test_shots_that_wait_are_not_counted_twice_by_a_second_look(stream):
    _, patterns = stream()
    finder = HitFinder(HitSettings(), patterns.n_pixels)
    finder.look(patterns[:25])
    finder.begin_again()
    finder.look(patterns[:25])
    assert len(finder.state()["waiting_start"]) == 25 + 1


def test_a_second_look_keeps_what_was_learned_and_counts_anew(stream):
    experiment, patterns = stream()
    finder = HitFinder(HitSettings(), patterns.n_pixels, experiment.detector)
    first = finder.look(patterns)
    finder.begin_again()
    assert finder.n_seen == finder.powder.n_hits == 0
    second = finder.look(patterns)
    kind = patterns.columns["truth_kind"]
    assert second["is_hit"][kind == ShotKind.HIT].all()
    assert second["is_hit"].sum() == finder.powder.n_hits
    assert abs(int(second["is_hit"].sum()) - int(first["is_hit"].sum())) < 15
