"""HDF5 files that lead to other files: within the roots they may, out of them they may not."""

from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from orienteer.dashboard import link_guard
from orienteer.dashboard.link_guard import LinkGuard
from orienteer.dashboard.roots import Roots
from orienteer.errors import FileError
from orienteer.volume.opening import write_volume
from orienteer.volume.volume import Volume


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["values"] = np.arange(64.0, dtype="f4").reshape(1, 4, 4, 4)
    return tmp_path / "secret.h5"


def lead(path: Path, how: str, to: Path) -> Path:
    """A file in which something named "values" lies in another file."""
    with h5py.File(path, "w") as file:
        if how == "link":
            file["deep/group/values"] = h5py.ExternalLink(to, "/values")
        elif how == "virtual":
            layout = h5py.VirtualLayout((4, 4, 4), "f4")
            layout[:] = h5py.VirtualSource(to, "values", (1, 4, 4, 4))[0]
            file.create_virtual_dataset("values", layout)
        else:
            file.create_dataset("values", (64,), "f4", external=[(str(to), 0, 256)])
    return path


@pytest.mark.parametrize("how", ["link", "virtual", "storage"])
@pytest.mark.parametrize("is_relative", [False, True])
def test_a_file_that_leads_out_of_the_roots_is_refused(
    tmp_path: Path, secret: Path, how: str, is_relative: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = lead(root / "file.h5", how, Path("../secret.h5") if is_relative else secret)
    with pytest.raises(FileError, match="outside"):
        LinkGuard(Roots([root])).file(path)
    assert LinkGuard(Roots([tmp_path])).file(path) == path


@pytest.mark.parametrize("how", ["link", "virtual", "storage"])
@pytest.mark.parametrize("name", ["secret.h5", "{root}/not/there/secret.h5"])
def test_the_folder_in_which_the_server_was_started_is_not_led_to(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, how: str, name: str
) -> None:
    """The library looks for a name there, too, when it does not find it beside the file."""
    root = tmp_path / "root"
    root.mkdir()
    path = lead(root / "file.h5", how, Path(name.format(root=root)))
    monkeypatch.chdir(secret.parent)
    with pytest.raises(FileError, match="outside"):
        LinkGuard(Roots([root])).file(path)


def test_a_file_that_leads_out_by_way_of_another_is_refused(tmp_path: Path, secret: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    lead(root / "between.h5", "link", secret)
    path = lead(root / "file.h5", "link", Path("between.h5"))
    with pytest.raises(FileError, match="outside"):
        LinkGuard(Roots([root])).file(path)


def test_files_that_lead_to_each_other_are_looked_through_once(tmp_path: Path) -> None:
    lead(tmp_path / "a.h5", "link", Path("b.h5"))
    lead(tmp_path / "b.h5", "link", Path("a.h5"))
    assert LinkGuard(Roots([tmp_path])).file(tmp_path / "a.h5") == tmp_path / "a.h5"


def test_what_a_file_leads_to_may_not_become_a_link_that_leads_out(tmp_path: Path, secret: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    guard = LinkGuard(Roots([root]))
    lead(root / "other.h5", "link", Path("nothing.h5"))
    path = lead(root / "file.h5", "link", Path("other.h5"))
    guard.file(path)
    (root / "other.h5").unlink()
    (root / "other.h5").symlink_to(secret)
    with pytest.raises(FileError, match="outside"):
        guard.file(path)


def test_names_that_the_library_makes_up_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    rows, row = h5py.h5s.create_simple((1, 4), (h5py.h5s.UNLIMITED, 4)), h5py.h5s.create_simple((1, 4))
    rows.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), block=(1, 4))
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_virtual(rows, b"part_%b.h5", b"values", row)
    with h5py.File(path, "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"values", h5py.h5t.IEEE_F32LE, rows, layout)
    with pytest.raises(FileError, match="name patterns"):
        LinkGuard(Roots([tmp_path])).file(path)


def test_a_file_is_looked_through_again_when_it_has_changed(tmp_path: Path, secret: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    guard = LinkGuard(Roots([root]))
    path = root / "file.h5"
    with h5py.File(path, "w") as file:
        file["values"] = 1.0
    guard.file(path)
    lead(path, "link", secret)
    with pytest.raises(FileError, match="outside"):
        guard.file(path)


def test_a_file_of_more_things_than_can_be_looked_through_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_guard, "MOST_LINKS", 20)
    with h5py.File(tmp_path / "file.h5", "w") as file:
        for number in range(30):
            file[f"{number}"] = number
    with pytest.raises(FileError, match="more than"):
        LinkGuard(Roots([tmp_path])).file(tmp_path / "file.h5")


def test_an_intensity_that_lies_elsewhere_is_not_served(
    root: Path, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    path = root / "virus" / "intensity.h5"
    outside = tmp_path / "outside.h5"
    write_volume(outside, Volume(np.ones((4, 4, 4)), 0.01, "reciprocal"))
    with h5py.File(path, "r+") as file:
        del file["values"]
        file["values"] = h5py.ExternalLink(outside, "/values")
    with made_up.serving(root) as (_, client):
        answer = client.get(f"/api/runs/{made_up.run_id(client)}/volume")
    assert answer.status_code == 422
    assert "outside" in answer.json()["error"]
