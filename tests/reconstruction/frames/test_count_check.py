"""Counts that are hardly photons, and frames without any, are told with their place before the first step."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import OrienteerError
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.count_check import CountCheck
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.patterns import Patterns

USABLE = np.array([0, 1, 3])


def remarks(*batches: Any, counts_photons: bool = True) -> list[str]:
    check = CountCheck("hits.h5")
    for frames in batches:
        check.add(Patterns(frames), USABLE)
    check.n_frames += 1000  # frames are not few
    return check.remarks(counts_photons)


def test_good_counts_need_no_word() -> None:
    assert remarks(np.ones((3, 4), np.int32)) == []
    assert remarks(np.full((3, 4), 0.5), np.zeros((1, 4))) == []  # shares of a photon, and a dark level of 0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_huge_count_is_told_with_frame_and_pixel(is_sparse: bool) -> None:
    frames = np.ones((5, 4), np.int64)
    frames[2, 3], frames[1, 2] = 2**25, 2**26  # pixel 2 is not used
    second = Patterns(frames).sparse() if is_sparse else frames
    (said,) = remarks(np.ones((10, 4), np.int64), second)
    assert said.startswith("frame 12 counts 33,554,432 in pixel 3, ")
    assert "mask the pixel" in said


def test_a_count_that_no_list_holds_is_refused_with_its_place() -> None:
    frames = np.ones((5, 4), np.int64)
    frames[2, 3] = 2**40
    with pytest.raises(
        OrienteerError, match=r"hits\.h5: frame 2 counts 1,099,511,627,776 in pixel 3"
    ) as caught:
        remarks(frames)
    assert caught.value.hint.startswith("Mask the pixel")
    frames[2, 3], frames[2, 2] = 1, 2**40
    assert remarks(frames) == []


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (np.tile([0.0, -1.0, 0.0, 2.0], (9, 1)), "33.3% of the values are negative"),
        (np.tile([0.7, 1.9, 0.0, 2.3], (9, 1)), "no value is below 0.7"),
    ],
)
def test_what_is_no_photons_is_said_where_photons_are_counted(frames: Any, words: str) -> None:
    (said,) = remarks(frames)
    assert said.startswith(words)
    assert "--likelihood gaussian" in said
    assert remarks(frames, counts_photons=False) == []


def test_frames_without_photons_are_counted(tiny: Any) -> None:
    frames = np.array(tiny.patterns.dense())
    frames[20:] = 0
    said = Emc(tiny.source(frames=frames), EmcSettings(diameter_A=200), device="cpu").remarks
    assert [remark for remark in said if remark == "60 of 80 frames hold no photon at all."]


def test_a_file_without_frames_is_named(tiny: Any, tmp_path: Path) -> None:
    path = tmp_path / "none.h5"
    with orienteer.writer_for(path, detector=tiny.detector):
        pass
    with pytest.raises(OrienteerError, match=r"none\.h5: there are no frames in it"):
        Emc(orienteer.open(path), device="cpu")
    without = tiny.source(columns={})
    with pytest.raises(OrienteerError, match="do not say at which wavelength") as caught:
        Emc(without, device="cpu")
    assert "--photon-energy" not in caught.value.hint
