"""Runs are found again by what is known of them, and text stays text."""

from typing import Any

import pytest

from orienteer.campaign.address import CampaignError
from orienteer.campaign.campaign import Campaign
from orienteer.errors import SettingsError


def names(found: tuple[int, list[dict[str, Any]]]) -> list[str]:
    return [run["name"] for run in found[1]]


def test_a_run_is_added_once_and_changed_after(campaign: Campaign) -> None:
    number = campaign.add_run("r1", data="raw/r1.h5", sample="virus", is_open=True)
    assert campaign.add_run("r1", folder="runs/r1", kind="live") == number
    described = campaign.run("r1")
    assert described["data"] == "raw/r1.h5"
    assert described["folder"] == "runs/r1"
    assert described["sample"] == "virus"
    assert described["is_open"]
    campaign.close_run(number)
    assert not campaign.run(number)["is_open"]


def test_runs_of_different_places_are_different_runs(campaign: Campaign) -> None:
    assert campaign.add_run_at("/day1/r1", kind="live", is_open=True) == ("r1", True)
    assert campaign.add_run_at("/day2/r1", data="raw.h5") == ("day2 r1", True)
    assert campaign.add_run_at("/day1/r1", sample="virus") == ("r1", False)
    assert campaign.add_run_at("/raw/day2/r1.h5", is_folder=False) == ("r1 (2)", True)
    found = {run["name"]: run for run in campaign.runs()[1]}
    assert {run["folder"] for run in found.values()} == {"/day1/r1", "/day2/r1", None}
    assert (found["r1"]["sample"], found["r1"]["kind"], found["r1"]["is_open"]) == ("virus", "live", True)
    assert found["r1 (2)"]["data"] == "/raw/day2/r1.h5"


def test_runs_are_searched_tagged_sorted_and_paged(campaign: Campaign) -> None:
    for i in range(12):
        campaign.add_run(f"r{i:02d}", sample="virus" if i % 2 else "gold_beads")
    assert campaign.tag("r03", add=["good", "50% off"]) == ["50% off", "good"]
    campaign.note("r04", "The Jet was unstable.", author="night shift")
    assert names(campaign.runs(tag="good")) == ["r03"]
    assert names(campaign.runs(search="jet")) == ["r04"]
    assert names(campaign.runs(search="50%")) == ["r03"]
    assert campaign.runs(search="%")[0] == 1
    assert campaign.runs(search="GOLD_")[0] == 6
    assert names(campaign.runs(sample="virus", sort="name", limit=2)) == ["r01", "r03"]
    total, page = campaign.runs(sort="-name", offset=10, limit=5)
    assert total == 12
    assert [run["name"] for run in page] == ["r01", "r00"]
    assert names(campaign.runs(limit=1)) == ["r04"]  # what was changed last comes first
    assert campaign.tag("r03", remove=["good"]) == ["50% off"]
    with pytest.raises(CampaignError, match="not sorted by"):
        campaign.runs(sort="name; DROP TABLE run")


def test_facts_are_replaced_by_name(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.put_facts(
        "r1", parameters={"emc.level": 4}, results={"resolution_A": 12.5}, files={"map": "a.mrc"}
    )
    campaign.put_facts("r1", results={"resolution_A": 11.0, "states": [1, 2]})
    described = campaign.run("r1")
    assert described["parameters"] == {"emc.level": 4}
    assert described["results"] == {"resolution_A": 11.0, "states": [1, 2]}
    assert described["files"] == {"map": "a.mrc"}


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE run; --",
        "$(touch owned)",
        "%s ? :name",
        "a\\'b",
        "名前",
        "Übersicht",
        'x"y',
        "{folder}",
    ],
)
def test_any_text_is_kept_as_it_is(campaign: Campaign, text: str) -> None:
    campaign.add_run("r1", data=f"raw/{text}.h5")
    campaign.note("r1", text)
    campaign.tag("r1", add=[text])
    described = campaign.run("r1")
    assert described["data"] == f"raw/{text}.h5"
    assert described["notes"][0]["text"] == text
    assert described["tags"] == [text]
    assert names(campaign.runs(search=text)) == ["r1"]
    assert names(campaign.runs(tag=text)) == ["r1"]


@pytest.mark.parametrize(
    "name", ["", "-x", "../r1", "a/b", " r1", "r1\n", "--out=x", ".hidden", "a\x1b[0m", "x" * 201]
)
def test_names_that_are_paths_or_options_are_refused(campaign: Campaign, name: str) -> None:
    with pytest.raises(SettingsError, match="no name for a run"):
        campaign.add_run(name)
    assert campaign.runs()[0] == 0


def test_control_characters_do_not_reach_a_terminal(campaign: Campaign) -> None:
    campaign.add_run("r1")
    campaign.note("r1", "one\x1b[31m\x00two\nthree")
    assert campaign.run("r1")["notes"][0]["text"] == "one[31mtwo\nthree"
    with pytest.raises(SettingsError, match="a tag is"):
        campaign.tag("r1", add=["a\x07"])
    with pytest.raises(SettingsError, match="a note has"):
        campaign.note("r1", " ")
