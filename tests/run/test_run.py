"""Run: the same lines begin, resume and end a run, and refuse what is not the same."""

import itertools
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.checkpoint import LAST, PREVIOUS
from orienteer.run.directory import RunDirectory
from orienteer.run.run import Run
from orienteer.run.settings_file import hash_settings, lasting, read_settings
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.validate.halves import common_group
from orienteer.volume.opening import open_volume


def finish(run: Run) -> list[int]:
    return [step.iteration for step in run.iterate()]


def test_a_run_leaves_everything_in_its_directory(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    run = runs.make(path, steps=5)
    assert finish(run) == [1, 2, 3, 4, 5]
    names = {entry.name for entry in path.iterdir()}
    assert names == {
        "run.json", "settings.toml", "events.jsonl", "events_rank_000.jsonl", LAST, PREVIOUS,
        "intensity.h5", "intensity.mrc", "orientations.h5",
    }  # fmt: skip  # and neither a lock nor anything half-written
    described = json.loads((path / "run.json").read_text())
    assert described["seed"] == 3
    assert described["input"]["frames"] == 12
    assert {"orienteer", "numpy", "python"} <= set(described["versions"])
    assert [event["event"] for event in run.events] == ["started", *["step"] * 5, "finished"]
    assert run.finished
    assert run.reason == "All steps are done."
    assert run.steps[0]["radial"] == {
        "q_inv_A": [0.0, 0.1, 0.2],
        "intensity": [run.steps[0]["change"], None, 1],
    }
    np.testing.assert_array_equal(open_volume(path / "intensity.mrc").values, run.volumes()[0].values)
    np.testing.assert_array_equal(run.orientations()["event_id"], np.arange(12) + 100)
    assert finish(run) == []
    assert finish(runs.make(path, steps=5)) == []
    assert "finished" in repr(Run.open(path))


@pytest.mark.parametrize(
    ("given", "told", "is_it"),
    [
        ("auto", ["C1", "I"], "I"), ("auto", ["C1"], "C1"), ("auto", [], "C1"), ("D3", ["D3"], "D3"),
        ("T", [], "T"),
    ],
)  # fmt: skip
def test_its_symmetry_is_the_one_that_was_given_or_else_found(
    tmp_path: Path, given: str, told: list[str], is_it: str
) -> None:
    lines = [{"event": "step", "iteration": 1 + i, "symmetry": name} for i, name in enumerate(told)]
    lines.insert(0, {"event": "step", "iteration": 0})  # of an older version
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = Run(tmp_path, {"method": "emc"}, EmcSettings(symmetry=given), None, "cpu")
    assert run.group.name == is_it
    assert run.given_group.name == ("C1" if given == "auto" else given)
    assert common_group(run, run).name == is_it
    other = Run(tmp_path / "other", {"method": "emc"}, EmcSettings(symmetry="O"), None, "cpu")
    assert common_group(run, other).name == "C1"


def test_several_models_get_a_map_each_and_one_file_together(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = runs.make(tmp_path / "run", steps=2, models=2)
    finish(run)
    assert len(run.volumes()) == 2
    second = open_volume(tmp_path / "run" / "intensity_2.mrc")
    np.testing.assert_array_equal(second.values, run.volumes()[1].values)
    assert not (tmp_path / "run" / "intensity.mrc").exists()


def test_leaving_the_loop_anywhere_changes_nothing(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path
) -> None:
    wanted = uninterrupted(steps=9, dragonfly_output=True)
    path = tmp_path / "run"
    seen = []
    for n in (1, 3, 2):
        for step in runs.make(path, steps=9, dragonfly_output=True).iterate():
            seen.append(step.iteration)
            n -= 1
            if n == 0:
                break
    seen += finish(Run.open(path, source=runs.source()))
    assert seen == list(range(1, 10))
    assert runs.outcome(path) == wanted
    assert len(wanted["dragonfly"]) == 9


def test_a_number_of_steps_at_a_time_keeps_the_method_in_memory(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = uninterrupted(steps=6)
    run = runs.make(tmp_path / "run", steps=6)
    assert len(list(run.iterate(2))) == 2
    monkeypatch.setattr(type(run), "source", property(lambda self: pytest.fail("made a second method")))
    assert len(list(run.iterate(2))) == 2
    monkeypatch.undo()
    # Another process goes on before this one does: then the checkpoint counts, not the memory.
    assert len(list(runs.make(tmp_path / "run", steps=6).iterate(1))) == 1
    assert [step.iteration for step in run.iterate(9)] == [6]
    assert runs.outcome(tmp_path / "run") == wanted


def test_an_interrupted_loop_that_is_still_in_memory_lets_go(runs: SimpleNamespace, tmp_path: Path) -> None:
    loop = runs.make(tmp_path / "run").iterate()
    assert next(loop).iteration == 1
    other = runs.make(tmp_path / "run").iterate()
    assert next(other).iteration == 2
    assert list(loop) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": 7}, r"recurrence\.steps \(7 instead of 5\)"),
        ({"factor": 3.8}, r"recurrence\.factor \(3\.8 instead of 3\.9\)"),
        ({"seed": 4}, r"the seed \(4 instead of 3\)"),
        ({"value": 2}, "the content of the data"),
    ],
)
def test_other_settings_or_data_are_refused_by_name(
    runs: SimpleNamespace, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    list(runs.make(tmp_path / "run", steps=5).iterate(2))
    given = {"steps": 5, **changed}
    source = runs.source(given.pop("value", 1))
    with pytest.raises(FileError, match=said) as caught:
        runs.make(tmp_path / "run", source=source, **given)
    assert "--restart" in caught.value.hint
    assert "\n" not in caught.value.message
    # Begun anew, nothing of the old run is left.
    run = runs.make(tmp_path / "run", source=source, restart=True, **given)
    assert run.events == []
    assert finish(run)[0] == 1


@pytest.mark.parametrize(("begun", "asked"), [("mtip", "emc"), ("emc", "mtip")])
def test_another_method_is_refused_by_name(
    runs: SimpleNamespace, tmp_path: Path, begun: str, asked: str
) -> None:
    Run.create(tmp_path / "run", runs.source(), method=begun)
    with pytest.raises(FileError) as caught:
        Run.create(tmp_path / "run", runs.source(), method=asked)
    assert caught.value.message.endswith(f"Different now: the method ({asked} instead of {begun}).")


def test_a_higher_limit_reopens_a_run_and_ends_in_the_same_bits(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path
) -> None:
    wanted = uninterrupted(steps=9)
    path = tmp_path / "run"
    assert finish(runs.make(path, steps=9, limit=4)) == [1, 2, 3, 4]
    run = runs.make(path, steps=9, limit=4)
    assert (run.finished, run.reason) == (True, "The limit is reached.")
    n_events = len(run.events)
    assert finish(run) == []
    assert len(run.events) == n_events
    assert finish(runs.make(path, steps=9, limit=2)) == []
    assert finish(runs.make(path, steps=9, limit=6)) == [5, 6]
    assert Run.open(path, source=runs.source()).settings.limit == 6
    run = runs.make(path, steps=9)
    assert finish(run) == [7, 8, 9]
    assert run.reason == "All steps are done."
    assert finish(runs.make(path, steps=9, limit=20)) == []
    assert runs.outcome(path) == wanted


def test_what_changes_no_result_may_change_on_the_way(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "run"
    list(runs.make(path, steps=5).iterate(2))
    finish(runs.make(path, steps=5, dragonfly_output=True))
    assert sorted(p.name for p in path.glob("dragonfly/*")) == [f"output_00{i}.h5" for i in (3, 4, 5)]
    file = path / "settings.toml"
    assert "dragonfly_output = true" in file.read_text()
    file.write_text(file.read_text().replace("limit = 0", "limit = 7"))
    assert Run.open(path).settings.limit == 7


def test_data_that_have_grown_or_a_moved_detector_are_noticed(tmp_path: Path, runs: SimpleNamespace) -> None:
    def write(n_frames: int) -> None:
        detector = square_detector((3, 3), pixel_size_m=1e-3, distance_m=0.1)
        with writer_for(tmp_path / "frames.h5", detector=detector) as writer:
            writer.append(Patterns(np.ones((n_frames, 9), np.int32)))

    write(12)
    list(runs.make(tmp_path / "run", source=orienteer.open(tmp_path / "frames.h5")).iterate(1))
    further = square_detector((3, 3), pixel_size_m=1e-3, distance_m=0.2)
    with pytest.raises(FileError, match=r"Different now: the detector \(geometry or mask\)\.\n"):
        runs.make(tmp_path / "run", source=orienteer.open(tmp_path / "frames.h5", geometry=further))
    write(13)
    with pytest.raises(FileError, match=r"Different now: the number of frames \(13 instead of 12\)\.\n"):
        runs.make(tmp_path / "run", source=orienteer.open(tmp_path / "frames.h5"))
    with pytest.raises(FileError, match=r"the number of frames \(13 instead of 12\)"):
        next(Run.open(tmp_path / "run").iterate())


def test_a_run_finds_its_data_geometry_and_wavelength_by_itself(
    tmp_path: Path, runs: SimpleNamespace
) -> None:
    np.save(tmp_path / "frames.npy", np.ones((12, 3, 3), np.int32))
    detector = square_detector((3, 3), pixel_size_m=1e-3, distance_m=0.1)
    source = orienteer.open(tmp_path / "frames.npy", geometry=detector, wavelength_A=2.5)
    assert next(runs.make(tmp_path / "run", source=source).iterate()).iteration == 1
    run = Run.open(tmp_path / "run")
    assert [step.iteration for step in run.iterate(1)] == [2]
    assert run.source.detector is not None
    assert run.source.read_columns(["wavelength_A"])["wavelength_A"][0] == 2.5


def test_a_wavelength_other_than_that_of_the_data_is_remembered(
    tmp_path: Path, runs: SimpleNamespace
) -> None:
    with writer_for(tmp_path / "frames.h5", frame_shape=(3, 3)) as writer:
        writer.append(Patterns(np.ones((12, 9), np.int32), columns={"wavelength_A": np.full(12, 2.5)}))
    with pytest.warns(UserWarning, match=r"the data say a wavelength of 2\.5 A; 3 A is used"):
        source = orienteer.open(tmp_path / "frames.h5", wavelength_A=3.0)
    runs.make(tmp_path / "run", source=source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = Run.open(tmp_path / "run")
        assert next(run.iterate()).iteration == 1
    assert run.source.read_columns(["wavelength_A"])["wavelength_A"].tolist() == [3.0] * 12


def test_a_run_of_data_without_a_file_asks_for_them(tmp_path: Path, runs: SimpleNamespace) -> None:
    runs.make(tmp_path / "run")
    with pytest.raises(OrienteerError, match="came from no file"):
        next(Run.open(tmp_path / "run").iterate())
    with pytest.raises(FileError, match="the content of the data"):
        Run.open(tmp_path / "run", source=runs.source(5))


def test_folders_of_other_things_are_left_alone(tmp_path: Path, runs: SimpleNamespace) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    for restart in (False, True):
        with pytest.raises(FileError, match=r"holds other things \('thesis\.tex'\)"):
            runs.make(tmp_path, restart=restart)
    with pytest.raises(FileError, match="is a file"):
        runs.make(tmp_path / "thesis.tex")
    with pytest.raises(FileError, match="holds no run"):
        Run.open(tmp_path)
    with pytest.raises(FileError, match="there is no such folder"):
        Run.open(tmp_path / "absent")
    path = tmp_path / "run"
    finish(runs.make(path, steps=2, dragonfly_output=True))
    with pytest.raises(FileError, match=f"holds no run.\nDid you mean {path}?"):
        Run.open(tmp_path)
    (path / "notes.txt").write_text("mine")
    (path / "validation" / "half_1").mkdir(parents=True)
    (path / "validation" / "half_1" / "run.json").write_text("of the old run")
    runs.make(path, restart=True, steps=3)
    assert {entry.name for entry in path.iterdir()} == {"run.json", "settings.toml", "notes.txt"}


def test_densities_of_further_models_go_with_their_run(tmp_path: Path, runs: SimpleNamespace) -> None:
    path = tmp_path / "run"
    finish(runs.make(path, steps=2, models=2))
    phased = path / "phased_model_2"
    phased.mkdir()
    for name in ("density.mrc", "density.h5", "support.mrc", "phasing.json"):
        (phased / name).write_text("of the old run")
    runs.make(path, restart=True, steps=3)
    assert {entry.name for entry in path.iterdir()} == {"run.json", "settings.toml"}
    phased.mkdir()
    (phased / "notes.txt").write_text("mine")
    (path / "run.json").unlink()
    runs.make(path, steps=3)
    assert (phased / "notes.txt").read_text() == "mine"


def test_a_step_that_fails_is_in_the_log_and_the_run_can_go_on(tmp_path: Path, runs: SimpleNamespace) -> None:
    run = runs.make(tmp_path / "run", steps=5, failing_step=3)
    with pytest.raises(ZeroDivisionError):
        finish(run)
    failed = run.events[-1]
    assert (failed["event"], failed["reason"]) == ("failed", "ZeroDivisionError: the step fails")
    with pytest.raises(ZeroDivisionError):
        finish(run)
    assert run.iteration == 2
    assert run.holder is None


def test_a_full_disk_at_the_end_is_told_and_noted_once(
    tmp_path: Path, runs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.make(tmp_path / "run", steps=1)

    def fail(*_: object) -> None:
        raise FileError(run.path / "intensity.h5", "could not be written: the disk is full.", "Make room.")

    monkeypatch.setattr(RunDirectory, "write_results", fail)
    with pytest.raises(FileError) as caught:
        finish(run)
    assert caught.value.hint.count("The same command resumes") == 1
    assert [event["event"] for event in run.events].count("failed") == 1


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path
) -> None:
    wanted = uninterrupted(steps=9)
    path = tmp_path / "run"
    for n in (4, 2):  # leaving the loop saves
        list(itertools.islice(runs.make(path, steps=9).iterate(), n))
    content = bytearray((path / LAST).read_bytes())
    content[len(content) // 2] ^= 1
    (path / LAST).write_bytes(content)
    with pytest.warns(UserWarning, match="The run goes on from the checkpoint before it, of iteration"):
        finish(runs.make(path, steps=9))
    assert runs.outcome(path) == wanted
    assert any("checkpoint" in event.get("note", "") for event in Run.open(path).events)


def test_two_damaged_checkpoints_are_one_sentence(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "run"
    for _ in range(2):
        list(runs.make(path).iterate(2))
    for name in (LAST, PREVIOUS):
        (path / name).write_bytes((path / name).read_bytes()[:-500])
    with pytest.raises(FileError, match="nor the one before it") as caught:
        finish(runs.make(path))
    assert "--restart" in caught.value.hint
    assert "\n" not in caught.value.message


def test_a_torn_log_is_mended(runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path) -> None:
    wanted = uninterrupted(steps=6)
    path = tmp_path / "run"
    list(runs.make(path, steps=6).iterate(3))
    with (path / "events.jsonl").open("a") as log:
        log.write('{"event":"step","iteration":4,"change":9}\n{"event":"step","itera')
    run = runs.make(path, steps=6)
    assert run.iteration == 4
    finish(run)
    assert runs.outcome(path) == wanted
    resumed = [event for event in run.events if event["event"] == "resumed"]
    assert [event["steps_done_again"] for event in resumed] == [1]


def test_changed_settings_in_the_directory_are_noticed(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = runs.make(tmp_path / "run", steps=5)
    file = tmp_path / "run" / "settings.toml"
    text = file.read_text()
    file.write_text(text.replace("steps = 5", "steps = 6"))
    with pytest.raises(FileError, match=r"settings\.toml: was changed after the run had begun"):
        Run.open(tmp_path / "run")
    file.write_text(text + "# a remark\n")
    assert Run.open(tmp_path / "run").settings == run.settings


def test_a_run_whose_settings_had_other_names_when_it_was_begun_goes_on(
    runs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.make(tmp_path / "run", steps=5, limit=2)
    finish(run)
    settings, description = run.path / "settings.toml", run.path / "run.json"
    settings.write_text(settings.read_text().replace("factor", "multiplier"))
    earlier = hash_settings(lasting(read_settings(settings), run.settings))
    description.write_text(json.dumps({**json.loads(description.read_text()), "settings_hash": earlier}))
    with pytest.raises(FileError, match=r"does not take: recurrence\.multiplier"):
        Run.open(run.path)

    monkeypatch.setattr(type(run.settings), "earlier_names", {"multiplier": "factor"})
    assert Run.open(run.path).settings == run.settings
    again = runs.make(run.path, steps=5, limit=4)  # which writes the settings with the names of today
    assert finish(again) == [3, 4]
    assert finish(Run.open(run.path, source=runs.source())) == []
    settings.write_text(settings.read_text().replace("factor = 3.9", "factor = 3.8"))
    with pytest.raises(FileError, match="was changed after the run had begun"):
        Run.open(run.path)


def test_settings_that_had_other_names_are_settings_today() -> None:
    for kind in (EmcSettings, MtipSettings):
        assert set(kind.earlier_names.values()) <= set(kind.model_fields)
        assert not set(kind.earlier_names) & set(kind.model_fields)
        assert kind.earlier_names["known_poses_file"] == "known_orientations_file"


def test_an_unknown_method_is_named() -> None:
    from orienteer.run.method import find_method

    with pytest.raises(SettingsError, match="'magic' is not known"):
        find_method("magic")


def test_nothing_is_warned_of_in_a_good_run(runs: SimpleNamespace, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finish(runs.make(tmp_path / "run", steps=3))


def test_a_lost_description_does_not_cost_the_checkpoint(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "run"
    list(runs.make(path).iterate(2))
    description = (path / "run.json").read_text()
    (path / "run.json").unlink()
    with pytest.raises(FileError, match=r"run\.json: is missing, but there is a checkpoint"):
        runs.make(path)
    (path / "run.json").write_text(description)
    assert next(runs.make(path).iterate()).iteration == 3
    (path / "run.json").write_text("{")
    with pytest.raises(FileError, match=r"run\.json: is damaged"):
        runs.make(path)
    assert next(runs.make(path, restart=True).iterate()).iteration == 1


@pytest.mark.parametrize("way", ["n_steps", "break", "error", "end"])
def test_a_method_gives_back_what_it_holds_however_the_run_is_left(
    runs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    closed = []
    monkeypatch.setattr(
        runs.method, "close", lambda method: closed.append(method.iteration), raising=False
    )  # fmt: skip
    run = runs.make(tmp_path / "run", steps=4, failing_step=3 if way == "error" else 0)
    if way == "error":
        with pytest.raises(ZeroDivisionError):
            finish(run)
    elif way == "break":
        for step in run.iterate():
            if step.iteration == 2:
                break
        run.iterate()  # the loop that was left is over now
    else:
        for _ in run.iterate(2 if way == "n_steps" else None):
            pass
    assert closed == [4 if way == "end" else 2]


@pytest.mark.parametrize("error", [OrienteerError("the page is full."), KeyboardInterrupt()])
def test_the_log_has_its_end_whatever_becomes_of_who_is_told_of_it(
    runs: SimpleNamespace, tmp_path: Path, error: BaseException
) -> None:
    def fail(_: Any) -> None:
        raise error

    run = runs.make(tmp_path / "run", steps=3)
    run.when_finished = fail
    with pytest.raises(type(error)):
        finish(run)
    assert run.events[-1]["event"] == "finished"
    assert Run.open(run.path).finished


@pytest.mark.filterwarnings("ignore:It begins with a map")
def test_how_a_run_has_begun_is_told_whenever_it_goes_on(runs: SimpleNamespace, tmp_path: Path) -> None:
    def begin(method: Any) -> None:
        method.remarks = ["It begins with a map."]

    run = runs.make(tmp_path / "run", steps=6)
    run.begin_with(begin)
    for n_steps in (1, 2):
        again = Run.open(run.path, source=runs.source())  # as another process does
        for _ in again.iterate(n_steps):
            pass
        next(iter(again.iterate(1)))
        assert again.remarks == ["It begins with a map."]
    assert again.iteration == 5
