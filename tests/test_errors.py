"""Errors: one clear sentence, also when they have travelled from one rank to another."""

import pickle

import pytest

from orienteer.errors import DeviceError, FileError, GeometryMismatch, OrienteerError, SettingsError


@pytest.mark.parametrize("kind", [OrienteerError, SettingsError, GeometryMismatch, DeviceError])
def test_errors_travel(kind: type[OrienteerError]) -> None:
    arrived = pickle.loads(pickle.dumps(kind("something is wrong.", "Mend it.")))
    assert type(arrived) is kind
    assert str(arrived) == "something is wrong.\nMend it."


def test_an_error_about_a_file_travels() -> None:
    arrived = pickle.loads(pickle.dumps(FileError("hits.h5", "is damaged.", "Copy it again.")))
    assert (arrived.path, arrived.reason, arrived.hint) == ("hits.h5", "is damaged.", "Copy it again.")
    assert str(arrived) == "hits.h5: is damaged.\nCopy it again."
