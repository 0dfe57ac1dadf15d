"""Runs of the European XFEL: modules and sequence files matched by train and pulse."""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.stream.base import NoAnswer
from orienteer.stream.euxfel import EuxfelSource
from orienteer.stream.opening import open_stream

DETECTOR = "SPB_DET_AGIPD1M-1"
XGM, XGM_FAST = "SA1_XTD2_XGM/DOOCS/MAIN", "SA1_XTD2_XGM/XGM/DOOCS:output"
TRAINS = range(10001, 10013)
PULSES = (0, 4, 8)


def value(train: int, module: int, pulse: int) -> int:
    return 1000 * (train % 50) + 20 * module + pulse


def write_file(
    path: Path,
    trains: list[int],
    sources: dict[str, dict[str, np.ndarray]],
    counts: dict[str, list[int]],
    version: str,
) -> None:
    """A file as the data acquisition writes it: METADATA, INDEX, and the data of its sources.

    sources : the datasets below each, by path; counts : rows of each train, by source.
    """
    with h5py.File(path, "w") as file:
        fixed = [name.encode() for name in sources]
        roots = [name.partition("/")[0].encode() for name in sources]
        place = "METADATA/dataSources" if version > "0.5" else "METADATA"
        file[f"{place}/dataSourceId"] = fixed
        file[f"{place}/root"] = roots
        file[f"{place}/deviceId"] = [name.partition("/")[2].encode() for name in sources]
        if version > "0.5":
            file["METADATA/dataFormatVersion"] = [version.encode()]
            file["INDEX/timestamp"] = np.array(trains, np.uint64) * np.uint64(100_000_000)
            file["INDEX/flag"] = np.ones(len(trains), np.int32)
        file["INDEX/trainId"] = np.array(trains, np.uint64)
        for name, datasets in sources.items():
            count = np.array(counts[name], np.uint64)
            first = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.uint64)
            index = "INDEX/" + name.partition("/")[2]
            file[f"{index}/first"] = first
            if version == "0.1":  # the oldest tell the last row, and whether there is any
                file[f"{index}/last"] = (first + np.maximum(count, 1) - 1).astype(np.uint64)
                file[f"{index}/status"] = (count > 0).astype(np.uint64)
            else:
                file[f"{index}/count"] = count
            for key, data in datasets.items():
                file.create_dataset(f"{name}/{key}", data=data)


def module_file(
    folder: Path,
    module: int,
    sequence: int,
    trains: list[int],
    pulses: Callable[[int], tuple[int, ...]] = lambda train: PULSES,
    raw: bool = False,
    version: str = "1.2",
) -> None:
    source = f"INSTRUMENT/{DETECTOR}/DET/{module}CH0:xtdf/image"
    shots = [(train, pulse) for train in trains for pulse in pulses(train)]
    frames = np.array([np.full((4, 3), value(t, module, p)) for t, p in shots], np.uint16).reshape(-1, 4, 3)
    if raw:  # the gain lies behind the signal
        frames = np.stack([frames, np.full_like(frames, 9)], axis=1)
    datasets = {
        "data": frames,
        "trainId": np.array([t for t, _ in shots], np.uint64).reshape(-1, 1),
        "pulseId": np.array([p for _, p in shots], np.uint64).reshape(-1, 1),
        "cellId": np.array([p % 2**16 for _, p in shots], np.uint16).reshape(-1, 1),
    }
    kind = "RAW" if raw else "CORR"
    counts = {source: [len(pulses(train)) for train in trains]}
    path = folder / f"{kind}-R0042-AGIPD{module:02d}-S{sequence:05d}.h5"
    write_file(path, trains, {source: datasets}, counts, version)


def control_file(folder: Path, trains: list[int]) -> None:
    slow, fast = f"CONTROL/{XGM}", f"INSTRUMENT/{XGM_FAST}/data"
    n = len(trains)
    sources = {
        slow: {
            "pulseEnergy/photonFlux/value": np.array(trains, np.float32),
            "pulseEnergy/photonFlux/timestamp": np.zeros(n, np.uint64),
        },
        fast: {"intensityTD": np.array([[t + 0.1 * k for k in range(20)] for t in trains])},
    }
    write_file(folder / "CORR-R0042-DA01-S00000.h5", trains, sources, {slow: [1] * n, fast: [1] * n}, "1.2")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Three modules (one with two digits) in two sequences each, cut at different trains."""
    for module, cut in ((0, 5), (2, 7), (11, 5)):
        trains = list(TRAINS)
        module_file(tmp_path, module, 0, trains[:cut])
        module_file(tmp_path, module, 1, trains[cut:])
    control_file(tmp_path, list(TRAINS))
    return tmp_path


def check(patterns, modules: tuple[int, ...] = (0, 2, 11)) -> None:
    train, pulse = patterns.columns["train_id"], patterns.columns["pulse_id"]
    assert np.array_equal(patterns.event_id, train * 2**16 + pulse)
    expected = [[value(int(t), m, int(p)) for m in modules] for t, p in zip(train, pulse, strict=True)]
    frames = patterns.frames.reshape(len(patterns), len(modules), 12)
    assert np.array_equal(frames, np.repeat(np.array(expected)[:, :, None], 12, axis=2))


def test_modules_and_sequences_are_matched_by_train(run_folder: Path, all_of) -> None:
    source = open_stream(f"extra-data:{run_folder}", most_events=7)
    assert source.frame_shape == (3, 4, 3)
    got = all_of(source)
    check(got)
    assert len(got) == 36
    assert np.allclose(got.columns["time_s"], got.columns["train_id"] / 10)
    assert source.counters.received == 36
    assert source.counters.dropped == 0


def test_small_data_come_from_control_and_instrument(run_folder: Path, all_of) -> None:
    source = EuxfelSource(
        run_folder,
        columns={
            "flux": (XGM, "pulseEnergy.photonFlux"),
            "intensity": (XGM_FAST, "data.intensityTD"),
            "nothing": ("NO/SUCH/SOURCE", "value"),
        },
    )
    columns = all_of(source).columns
    assert np.array_equal(columns["flux"], columns["train_id"].astype(float))
    assert np.allclose(columns["intensity"], columns["train_id"] + 0.1 * np.tile([0, 1, 2], 12))
    assert np.isnan(columns["nothing"]).all()


def test_only_the_chosen_frames_are_read(run_folder: Path) -> None:
    source = EuxfelSource(run_folder, most_events=20)
    events = source.next()
    check(events.patterns(np.array([19, 2, 7])))
    assert len(events.patterns(np.array([], np.int64))) == 0


def test_pulses_that_a_module_misses_are_dropped_and_counted(tmp_path: Path, all_of) -> None:
    module_file(tmp_path, 0, 0, [1, 2, 3, 4])
    module_file(tmp_path, 1, 0, [1, 3, 4], lambda train: (0, 8) if train == 3 else PULSES)
    source = EuxfelSource(tmp_path)
    got = all_of(source)
    check(got, (0, 1))
    assert got.event_id.tolist() == [
        t * 2**16 + p for t, p in [(1, 0), (1, 4), (1, 8), (3, 0), (3, 8)] + [(4, p) for p in PULSES]
    ]
    assert source.counters.dropped == 4
    assert source.counters.received == 12


@pytest.mark.parametrize("version", ["0.1", "0.5", "1.0", "1.2"])
def test_raw_data_of_old_and_new_files_are_read_without_their_gain(
    tmp_path: Path, all_of, version: str
) -> None:
    for module in (0, 1):
        pulses = lambda train: () if train == 2 else PULSES  # noqa: E731
        module_file(tmp_path, module, 0, [1, 2, 3], pulses, raw=True, version=version)
    got = all_of(EuxfelSource(tmp_path))
    check(got, (0, 1))
    assert np.unique(got.columns["train_id"]).tolist() == [1, 3]


def test_trains_that_were_filled_up_and_trains_without_frames_are_left_out(tmp_path: Path, all_of) -> None:
    module_file(tmp_path, 0, 0, [1, 2, 3, 0], lambda train: PULSES if train in (1, 3) else ())
    got = all_of(EuxfelSource(tmp_path))
    assert np.unique(got.columns["train_id"]).tolist() == [1, 3]


def test_a_position_leads_behind_its_train(run_folder: Path, all_of) -> None:
    source = EuxfelSource(run_folder, most_events=7)
    first = source.next()
    again = EuxfelSource(run_folder)
    again.seek(json.loads(json.dumps(first.position)))
    ids = np.concatenate([first.event_id, all_of(again).event_id])
    assert np.array_equal(ids, all_of(EuxfelSource(run_folder)).event_id)


def test_a_position_behind_the_last_train_is_that_of_another_run(tmp_path: Path, all_of) -> None:
    """All of an earlier run would be left out, without a word, as if it had been received."""
    for name, trains in {"later": [7, 8], "earlier": [1, 2]}.items():
        (tmp_path / name).mkdir()
        module_file(tmp_path / name, 0, 0, trains)
    later = EuxfelSource(tmp_path / "later", most_events=1000)
    position = later.next().position
    later.seek(position)  # all of it was received
    with pytest.raises(OrienteerError, match="ends with train 2, but train 8 was received before"):
        EuxfelSource(tmp_path / "earlier").seek(position)


def test_a_run_that_is_recorded_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.stream.euxfel._LOOK_EVERY_S", 0.02)
    module_file(tmp_path, 0, 0, [1, 2, 3])
    module_file(tmp_path, 1, 0, [1, 2])
    source = EuxfelSource(tmp_path, follow=True, most_events=100)
    assert np.unique(source.next(60.0).columns["train_id"]).tolist() == [1, 2]
    assert source.next(0.05) is None  # train 3 may still come for module 1
    module_file(tmp_path, 1, 1, [3, 4])
    module_file(tmp_path, 0, 1, [4])
    got: list[int] = []
    while len(got) < 6:
        events = source.next(60.0)
        got += events.columns["train_id"].tolist()
        assert events.n_dropped == 0
    assert got == [3, 3, 3, 4, 4, 4]
    source.quiet_s = 0.05
    while not source.is_finished:
        source.next(0.1)
    source.close()


def test_a_sequence_file_that_grows_gives_its_later_trains_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.stream.euxfel._LOOK_EVERY_S", 0.02)
    for module in (0, 1):
        module_file(tmp_path, module, 0, [1, 2])
    source = EuxfelSource(tmp_path, follow=True)
    check(source.next(60.0).patterns(), (0, 1))
    later = tmp_path / "later"
    later.mkdir()
    for module in (0, 1):
        module_file(later, module, 0, [1, 2, 3])
    for path in later.iterdir():
        path.rename(tmp_path / path.name)
    events = source.next(60.0)
    check(events.patterns(), (0, 1))
    assert events.columns["train_id"].tolist() == [3, 3, 3]
    source.close()


def test_a_detector_that_is_not_whole_yet_is_waited_for(tmp_path: Path) -> None:
    module_file(tmp_path, 0, 0, [1])
    with pytest.raises(NoAnswer, match="1 module of"):
        EuxfelSource(tmp_path, follow=True, n_modules=2, connect_s=0.1)
    with pytest.raises(OrienteerError, match="not 2"):
        EuxfelSource(tmp_path, n_modules=2)
    module_file(tmp_path, 1, 0, [1])
    assert EuxfelSource(tmp_path, follow=True, n_modules=2).frame_shape == (2, 4, 3)


def test_the_first_files_of_a_run_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.stream.euxfel._LOOK_EVERY_S", 0.02)
    (tmp_path / "later").mkdir()
    module_file(tmp_path / "later", 0, 0, [1])
    (path,) = (tmp_path / "later").iterdir()
    later = threading.Timer(0.3, path.rename, (tmp_path / path.name,))
    later.start()
    try:
        assert EuxfelSource(tmp_path, follow=True, connect_s=60.0).frame_shape == (4, 3)
    finally:
        later.join()


def test_values_of_pulses_stay_with_their_pulses_when_some_are_dropped(tmp_path: Path, all_of) -> None:
    module_file(tmp_path, 0, 0, [1])
    module_file(tmp_path, 1, 0, [1], lambda train: (4, 8))
    control_file(tmp_path, [1])
    columns = all_of(EuxfelSource(tmp_path, columns={"x": (XGM_FAST, "data.intensityTD")})).columns
    assert columns["pulse_id"].tolist() == [4, 8]
    assert np.allclose(columns["x"], [1.1, 1.2])


def test_numbers_of_pulses_that_cannot_be_or_stand_twice_are_counted(tmp_path: Path, all_of) -> None:
    for module in (0, 1):
        module_file(tmp_path, module, 0, [1], lambda train: (0, 4, 4, 70_000))
    source = EuxfelSource(tmp_path)
    got = all_of(source)
    assert got.columns["pulse_id"].tolist() == [0, 4]
    assert (source.counters.received, source.counters.dropped, source.counters.duplicates) == (3, 1, 1)


def test_trains_before_a_file_that_cannot_be_read_come_when_it_can(
    tmp_path: Path, all_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    module_file(tmp_path, 0, 0, [1, 2, 3])
    source = EuxfelSource(tmp_path)
    read = source._files.read

    def read_at_first(file: int, place: str, rows: slice) -> np.ndarray:
        if rows.start >= 6:
            raise FileError(tmp_path, "is away.")
        return read(file, place, rows)

    with monkeypatch.context() as away:
        away.setattr(source._files, "read", read_at_first)
        with pytest.raises(FileError, match="is away"):
            source.next()
    assert np.unique(all_of(source).columns["train_id"]).tolist() == [1, 2, 3]


def test_runs_that_extra_data_opens_are_taken(
    run_folder: Path, all_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for EXtra-data: ``open_run`` gives a collection whose ``files`` know their names."""
    asked = []

    def open_run(proposal: int, run: int, **options: str) -> SimpleNamespace:
        asked.append((proposal, run, options))
        return SimpleNamespace(
            files=[SimpleNamespace(filename=str(p)) for p in sorted(run_folder.glob("*.h5"))]
        )

    module = ModuleType("extra_data")
    module.open_run = open_run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "extra_data", module)
    got = all_of(open_stream("extra-data:proposal=7927,run=42,data=proc"))
    check(got)
    assert asked == [(7927, 42, {"data": "proc"})]
    check(all_of(EuxfelSource(open_run(1, 2))))
    with pytest.raises(OrienteerError, match="does not name a run"):
        open_stream("extra-data:proposal=7927,run=first")


def test_a_folder_that_is_no_run_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        EuxfelSource(tmp_path / "nowhere")
    with pytest.raises(NoAnswer, match="no modules"):
        EuxfelSource(tmp_path, follow=True, connect_s=0.1)  # it may be recorded soon
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = 1
    with pytest.raises(FileError, match=r"no modules.*other\.h5"):
        EuxfelSource(tmp_path)
    module_file(tmp_path, 0, 0, [1])
    with pytest.raises(FileError, match="no modules"):
        EuxfelSource(tmp_path, detector_name="LPD")
    with pytest.raises(OrienteerError, match=r"EXtra-data|does not name a run"):
        open_stream("extra-data:proposal=1,run=2")


def test_an_index_that_points_beyond_its_data_is_an_error_in_words(tmp_path: Path) -> None:
    module_file(tmp_path, 0, 0, [1, 2])
    (path,) = tmp_path.glob("*.h5")
    with h5py.File(path, "r+") as file:
        file[f"INDEX/{DETECTOR}/DET/0CH0:xtdf/image/count"][1] = 10**12
    with pytest.raises(FileError, match="indexed"):
        EuxfelSource(tmp_path).next()
