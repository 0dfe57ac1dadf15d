"""Dragonfly detectors by the formulas of the format, and round trips to rounding."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.dragonfly import (
    dragonfly_group_geometry,
    dragonfly_text_geometry,
    write_dragonfly_hdf5,
    write_dragonfly_text,
)
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, OrienteerError

DETD, RADIUS, N = 40.0, 53.5, 11


def reference_fields(polarisation: str = "x") -> dict[str, np.ndarray]:
    """What Dragonfly's make_detector would store: x slow, y fast, q in voxels, corr in steradian."""
    x, y = (
        axis.reshape(-1) for axis in np.meshgrid(np.arange(N) - N // 2, np.arange(N) - N // 2, indexing="ij")
    )
    n = np.sqrt(x**2 + y**2 + DETD**2)
    lost = {"x": x**2, "y": y**2, "none": (x**2 + y**2) / 2}[polarisation]
    radius = np.hypot(x, y)
    return {
        "qx": RADIUS * x / n,
        "qy": RADIUS * y / n,
        "qz": RADIUS * (DETD / n - 1),
        "corr": DETD / n**3 * (1 - lost / n**2),
        "mask": np.where(radius < 2, 2, np.where(radius > N // 2, 1, 0)).astype(np.uint8),
    }


def write_reference_text(path: Path, fields: dict[str, np.ndarray], header: str) -> None:
    rows = [
        f"{qx:21.15e} {qy:21.15e} {qz:21.15e} {corr:21.15e} {mask:d}"
        for qx, qy, qz, corr, mask in zip(
            *(fields[name] for name in ("qx", "qy", "qz", "corr", "mask")), strict=True
        )
    ]
    path.write_text("\n".join([header, *rows]) + "\n")


def assert_is_reference(detector: Detector, fields: dict[str, np.ndarray], polarisation: str = "x") -> None:
    q = np.stack([fields["qx"], fields["qy"], fields["qz"]], axis=1)
    assert np.allclose(RADIUS * detector.ewald_vectors, q, rtol=0, atol=1e-12)
    assert np.allclose(detector.correction(polarisation), fields["corr"], rtol=1e-12)  # type: ignore[arg-type]
    assert np.array_equal(detector.mask, fields["mask"])


@pytest.mark.parametrize("polarisation", ["x", "y", "none"])
def test_the_text_form_agrees_with_the_formulas(polarisation: str, tmp_path: Path) -> None:
    fields = reference_fields(polarisation)
    write_reference_text(tmp_path / "det.dat", fields, f"{N * N} {DETD} {RADIUS}")
    detector = dragonfly_text_geometry(tmp_path / "det.dat", pixel_size_m=2e-4).detector
    assert_is_reference(detector, fields, polarisation)
    assert detector.efficiency is None
    assert detector.frame_shape == (N, N)
    assert detector.distance_m == pytest.approx(DETD * 2e-4)
    assert np.allclose(detector.panels[0].slow_m, [2e-4, 0, 0], atol=1e-15)


def test_an_old_header_of_one_number_is_completed_from_the_curvature(tmp_path: Path) -> None:
    fields = reference_fields()
    write_reference_text(tmp_path / "det.dat", fields, str(N * N))
    detector = dragonfly_text_geometry(tmp_path / "det.dat").detector
    assert np.allclose(RADIUS * detector.ewald_vectors[:, 0], fields["qx"], atol=1e-9)
    # The distance in pixels is then the Ewald radius, so the correction is kept through the efficiency.
    assert np.allclose(detector.correction("x"), fields["corr"], rtol=1e-9)


@pytest.mark.parametrize("shape", [(N * N,), (N, N)])
def test_the_hdf5_form_agrees_with_the_formulas(shape: tuple[int, ...], tmp_path: Path) -> None:
    fields = reference_fields()
    with h5py.File(tmp_path / "det.h5", "w") as file:
        for name, values in fields.items():
            file[name] = values.reshape(shape)
        file["detd"] = DETD
        file["ewald_rad"] = RADIUS
        assert_is_reference(dragonfly_group_geometry(file).detector, fields)


@pytest.mark.parametrize("form", ["text", "hdf5"])
def test_a_round_trip_is_exact_to_rounding(form: str, tmp_path: Path) -> None:
    detector = square_detector(24, 3e-4, 0.02, beam_stop_radius_pixels=2, corners="merge_only")
    path = tmp_path / "det"
    if form == "text":
        write_dragonfly_text(path, detector, "y", ewald_radius_voxels=31.0)
        found = dragonfly_text_geometry(path, pixel_size_m=3e-4).detector
    else:
        write_dragonfly_hdf5(path, detector, "y", ewald_radius_voxels=31.0)
        with h5py.File(path) as file:
            assert float(file["ewald_rad"][()]) == 31.0
            found = dragonfly_group_geometry(file, pixel_size_m=3e-4).detector
    assert np.allclose(found.positions_m, detector.positions_m, rtol=0, atol=1e-15)
    assert np.allclose(found.correction("y"), detector.correction("y"), rtol=1e-13)
    assert np.array_equal(found.mask, detector.mask)
    assert found.frame_shape == (24, 24)


def test_an_efficiency_and_tilted_panels_survive_in_the_correction(
    tilted_detector: Detector, tmp_path: Path
) -> None:
    write_dragonfly_text(tmp_path / "det.dat", tilted_detector, "none")
    found = dragonfly_text_geometry(tmp_path / "det.dat").detector
    assert found.panels == ()
    assert np.allclose(found.directions, tilted_detector.directions, rtol=0, atol=1e-14)
    # The file does not name the polarisation; whichever is taken, the product is what was written.
    written = tilted_detector.correction("none")
    assert any(np.allclose(found.correction(kind), written, rtol=1e-12) for kind in ("x", "y", "none"))
    assert np.array_equal(found.mask, tilted_detector.mask)
    assert np.array_equal(found.covered, tilted_detector.covered)


def test_flat_vectors_need_the_radius_in_the_header(tmp_path: Path) -> None:
    fields = reference_fields()
    fields["qz"] = np.zeros(N * N)
    write_reference_text(tmp_path / "det.dat", fields, str(N * N))
    with pytest.raises(FileError, match="flat"):
        dragonfly_text_geometry(tmp_path / "det.dat")
    write_reference_text(tmp_path / "det.dat", fields, f"{N * N} {DETD} {RADIUS}")
    detector = dragonfly_text_geometry(tmp_path / "det.dat").detector
    assert np.allclose(RADIUS * detector.ewald_vectors[:, :2], np.stack([fields["qx"], fields["qy"]], axis=1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace(str(N * N), "1000000000", 1), "cannot hold"),
        (lambda text: text.replace(str(N * N), "12.5", 1), "cannot hold"),
        (lambda text: text.replace(str(N * N), "-3", 1), "cannot hold"),
        (lambda text: text.replace(str(N * N), str(N * N + 1), 1), "declares 122 pixels"),
        (lambda text: text.replace(str(N * N), str(N * N - 1), 1), "declares 120 pixels"),
        (lambda text: text[: len(text) // 2], "det.dat"),
        (lambda text: "\n".join([*text.splitlines()[:-1], "nan 0 0 1 0"]), "finite"),
        (lambda text: "\n".join([*text.splitlines()[:-1], "1 0 0 1 7"]), "mask levels"),
        (lambda text: "\n".join([*text.splitlines()[:-1], "900 0 0 1 0"]), "Ewald sphere"),
        (lambda text: "\n".join([*text.splitlines()[:-1], "0 0 0 -1 0"]), "not negative"),
        (lambda text: "\n".join([*text.splitlines()[:-1], "a b c d e"]), "det.dat"),
        (lambda text: text.replace(f"{DETD}", "-1", 1), "must be positive and finite"),
        (lambda text: text.replace(f"{DETD}", "nan", 1), "must be positive and finite"),
    ],
)
def test_a_damaged_text_is_a_file_error_with_the_reason(change: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "det.dat"
    write_reference_text(path, reference_fields(), f"{N * N} {DETD} {RADIUS}")
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(FileError, match=words):
        dragonfly_text_geometry(path)


def test_a_detector_before_the_sample_cannot_be_written(tmp_path: Path) -> None:
    behind = square_detector(4, 1e-3, 0.1).moved((0, 0, -0.3))
    with pytest.raises(OrienteerError, match="is not behind the sample"):
        write_dragonfly_text(tmp_path / "det.dat", behind)
