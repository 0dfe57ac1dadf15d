"""The files of a phasing say all that it does, and open elsewhere."""

import json
from pathlib import Path
from typing import Any

import mrcfile
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.phase.ensemble import Cluster, Clusters
from orienteer.phase.prtf import Prtf
from orienteer.phase.r_factor import RFactor
from orienteer.phase.result import Phasing, read_description
from orienteer.phase.scale import ARBITRARY, Scale
from orienteer.phase.weak_modes import WeakModes
from orienteer.volume.opening import open_volume
from orienteer.volume.volume import Volume

N, VOXEL_A = 11, 4.3


@pytest.fixture
def phasing() -> Phasing:
    """Nine starts, of which eight agree and one has no score."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N, N, N)).astype(np.float32)
    q_inv_A = np.linspace(0.01, 0.1, 5)
    clusters = (
        Cluster((3, 0, 1, 2, 4, 5, 6, 7), (1.0, *[0.8] * 7), 0.7, 1.5),
        Cluster((8,), (1.0,), 0.6, -np.inf),
    )
    return Phasing(
        density=Volume(values, VOXEL_A, name="density", metadata={"unit": ARBITRARY}),
        support=Volume((values > 0).astype(np.float32), VOXEL_A),
        clusters=Clusters(clusters, np.full((9, 9), 0.75), np.array([*[1.5] * 8, np.nan])),
        prtf=Prtf(q_inv_A, np.linspace(1, 0.5, 5), np.arange(5), 8),
        r_factor=RFactor(0.1, q_inv_A, np.linspace(0.05, 0.2, 5)),
        weak_modes=WeakModes(np.array([0.95, 0.4]), 0.3, 33),
        scale=Scale(2.0, ARBITRARY, "nothing"),
        background=0.5,
        data_error=0.1,
        shell_error=0.5,
        edge_A=12.0,
        diameter_A=30.0,
        seed=5,
        settings={"starts": 9},
        origin={"path": "intensity.h5", "checksum": "abc"},
        further_remarks=("Something was noticed.",),
    )


def test_files_hold_all_that_was_found(phasing: Phasing, tmp_path: Path) -> None:
    paths = phasing.save(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["density.mrc", "density.h5", "support.mrc", "phasing.json"]
    opened = Phasing.open(tmp_path / "new" / "folder")
    np.testing.assert_array_equal(opened.density.values, phasing.density.values)
    np.testing.assert_array_equal(opened.support.values, phasing.support.values)
    assert opened.density.metadata == phasing.density.metadata
    before, after = phasing.describe(), opened.describe()
    before.pop("created"), after.pop("created")
    assert after == before
    assert opened.remarks == phasing.remarks


def test_the_map_opens_in_place_and_size_elsewhere(phasing: Phasing, tmp_path: Path) -> None:
    """What ChimeraX reads: the size of a voxel, and an origin that puts the middle voxel at zero."""
    phasing.save(tmp_path)
    with mrcfile.open(tmp_path / "density.mrc") as mrc:
        step = float(mrc.voxel_size.x)
        assert step == pytest.approx(VOXEL_A, rel=1e-6)
        assert float(mrc.header.origin.x) == pytest.approx(-(N // 2) * step, rel=1e-5)
        np.testing.assert_array_equal(mrc.data.transpose(2, 1, 0), phasing.density.values)
        assert mrcfile.validate(tmp_path / "density.mrc")
    assert open_volume(tmp_path / "support.mrc").space == "real"


def test_the_description_can_be_read_by_anyone(phasing: Phasing, tmp_path: Path) -> None:
    phasing.save(tmp_path)
    told = json.loads((tmp_path / "phasing.json").read_text())
    assert told["n_averaged"] == 8
    assert told["share"] == pytest.approx(8 / 9)
    assert told["clusters"][0]["members"][0] in range(8)
    assert len(told["prtf"]["q_inv_A"]) == len(told["prtf"]["values"])
    assert told["hand"].startswith("not known")
    assert told["remarks"] == phasing.remarks


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "orienteer-phasing", "version": 2}', "nonsense"]
)
def test_a_damaged_description_is_refused_in_a_sentence(phasing: Phasing, tmp_path: Path, text: str) -> None:
    phasing.save(tmp_path)
    (tmp_path / "phasing.json").write_text(text)
    with pytest.raises(FileError, match=r"phasing\.json"):
        Phasing.open(tmp_path)


def test_a_notebook_shows_it(phasing: Phasing) -> None:
    assert "my particle" in phasing.show("my particle").get_suptitle()


def test_a_newer_description_is_refused(phasing: Phasing, tmp_path: Path) -> None:
    phasing.save(tmp_path)
    told: dict[str, Any] = json.loads((tmp_path / "phasing.json").read_text())
    (tmp_path / "phasing.json").write_text(json.dumps({**told, "version": 99}))
    with pytest.raises(FileError, match="version 99"):
        read_description(tmp_path)


def test_a_folder_that_is_a_file_is_refused(phasing: Phasing, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileError, match="taken"):
        phasing.save(tmp_path / "taken")
