"""Each part of a run is read by itself: what is missing or damaged is a sentence, the others are there."""

from pathlib import Path

import pytest

from orienteer.report.evidence import gather

PARTS = {
    "detector.h5": "detector",
    "intensity.h5": "intensities",
    "orientations.h5": "orientations",
    "settings.toml": "settings",
    "density.mrc": "density",
    "support.mrc": "support",
    "phasing.json": "phasing",
    "validation/validation.json": "validation",
    "validation/density_half_2.mrc": "halves",
    "validation/mask.mrc": "mask",
}


def test_a_whole_run_has_all_its_parts(run_folder: Path) -> None:
    evidence = gather(run_folder)
    for name in [*PARTS.values(), "description", "events", "frames"]:
        found = getattr(evidence, name)
        assert found.value is not None, name
        assert found.missing == ""
    assert [step["iteration"] for step in evidence.steps] == [1, 2, 3, 4]
    assert evidence.input["frames"] == 60


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "garbage"])
def test_a_damaged_part_is_a_sentence_and_no_other_is_touched(
    run_folder: Path, name: str, damage: str
) -> None:
    file = run_folder / name
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        contents = {"empty": b"", "torn": whole[: len(whole) // 2] + b"[", "garbage": b"\x93garbage" * 50}
        file.write_bytes(contents[damage])
    evidence = gather(run_folder)
    for part in PARTS.values():
        found = getattr(evidence, part)
        if part != PARTS[name]:
            assert found.value is not None, part
            continue
        assert found.value is None
        assert found.missing.endswith(".")
        assert "\n" not in found.missing
        if damage != "missing":
            assert file.name in found.missing


def test_lines_of_the_log_that_are_no_steps_are_passed_over(run_folder: Path) -> None:
    log = run_folder / "events.jsonl"
    log.write_bytes(
        b'{"event":"step","iteration":"x"}\n{"event":"step"}\nnonsense\n' + log.read_bytes() + b'{"ev'
    )
    assert [step["iteration"] for step in gather(run_folder).steps] == [1, 2, 3, 4]


def test_the_photons_of_the_data_are_counted(run_folder: Path) -> None:
    frames = gather(run_folder).frames.value
    assert frames is not None
    assert len(frames.photons) == 60
    assert frames.mean.sum() == pytest.approx(frames.photons.mean())
    assert frames.simulated
    assert not frames.needs_geometry
    assert not frames.needs_wavelength
