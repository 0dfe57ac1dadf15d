"""What the tests and the examples in docstrings share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def examples_write_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example in a docstring may write files with plain names: it runs in a folder of its own."""
    if isinstance(request.node, pytest.DoctestItem):
        folder: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(folder)
