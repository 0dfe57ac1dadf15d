"""Files that are watched for become runs once, under names of their own, whatever they are called."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from orienteer.campaign import watching
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.rules import Rule, put_rule
from orienteer.campaign.watching import add_new_runs


@pytest.fixture
def raw(campaign: Campaign, tmp_path: Path) -> Path:
    """A folder of which a rule watches the folders."""
    folder = tmp_path / "raw"
    made = Rule(out="out", steps=["report"], watch=str(folder / "*" / "*.h5"), settle_s=0).checked()
    campaign.database.write(lambda connection: put_rule(connection, "all", made, False))
    return folder


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


def test_files_of_the_same_name_become_runs_of_different_names(campaign: Campaign, raw: Path) -> None:
    paths = [put(raw / folder / "r1.h5") for folder in ("a", "b")]
    campaign.add_run("b r1", data="something else")
    assert add_new_runs(campaign) == ["r1", "r1 (2)"]
    assert [campaign.run(name)["data"] for name in ("r1", "r1 (2)")] == paths
    assert add_new_runs(campaign) == []


def test_long_names_and_names_that_are_no_text_stop_nobody(campaign: Campaign, raw: Path) -> None:
    for folder in ("a" * 200, "b" * 200, "c" * 200):
        put(raw / folder / f"{'x' * 199} y.h5")
    (raw / "d").mkdir()
    os.close(os.open(os.fsencode(raw / "d") + b"/\xff.h5", os.O_CREAT))
    put(raw / "d" / "last.h5")
    found = add_new_runs(campaign)
    assert len(found) == len(set(found)) == 4
    assert found[-1] == "last"


def test_workers_that_see_the_same_new_file_add_it_once(
    campaign: Campaign, address: str, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them have looked before any of them adds."""
    put(raw / "a" / "r1.h5")
    together = threading.Barrier(3)

    def look(path: Path, settle_s: float) -> bool:
        together.wait(120)
        return True

    monkeypatch.setattr(watching, "_is_settled", look)
    found: list[str] = []

    def work(*_: Any) -> None:
        with Campaign.open(address) as own:
            found.extend(add_new_runs(own))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["r1"]
    assert campaign.runs()[0] == 1
