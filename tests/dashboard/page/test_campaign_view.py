"""The campaign in a browser: its sums, its shots, its jobs, and the way from there to a run."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="campaigns need: pip install 'orienteer[campaign]'")

from orienteer.campaign.campaign import Campaign
from orienteer.campaign.jobs import plan_jobs
from orienteer.campaign.rules import Rule, put_rule


@pytest.fixture
def database(tmp_path: Path, root: Path, made_up) -> Path:
    """A campaign of two samples: two runs below the root, and one elsewhere that has shots."""
    made_up.write_run(root / "lysozyme")
    path = tmp_path / "campaign.db"
    with Campaign.open(path, create=True) as campaign:
        campaign.add_run("virus 7", folder=root / "virus", sample="MS2", kind="emc")
        campaign.add_run("crystal 2", folder=root / "lysozyme", sample="lysozyme", kind="emc")
        campaign.add_run("far", folder="/nowhere/at/all", sample="MS2", kind="live")
        shots = {"size_A": np.linspace(100, 227, 128), "photons": np.arange(128)}
        campaign.add_shots("far", {"event_id": np.arange(128), **shots}, "000000000")
        campaign.tag("crystal 2", ["ice"])
    return path


@pytest.fixture
def window(open_window, root: Path, database: Path):
    """The view of this campaign."""
    return open_window(root, campaign=str(database)).go("#/campaign")


def test_sums_and_samples_are_told(window):
    window.says("[data-number=runs] dd", "3")
    window.says("[data-number=shots] dd", "128")
    assert window.page.locator("[data-card=samples] tbody tr").count() == 2
    window.says("[data-card=samples] td", "MS2")
    window.says("[data-card=jobs]", "none yet")
    window.says("[data-card=rules]", "none yet")


def test_shots_are_counted_by_the_column_that_is_chosen(window):
    window.page.wait_for_selector("[data-card=shots] canvas[aria-label^='Shots: most in']")
    window.page.select_option("[data-card=shots] select", "size_A")
    window.says("[data-card=shots] .read-out", "128")
    window.page.wait_for_selector("[data-card=shots] canvas[aria-label$='Å']")
    options = window.page.locator("[data-card=shots] option").all_inner_texts()
    assert options == ["photons", "size"]


def test_from_a_sample_to_its_runs_and_on_to_one_of_them(window):
    window.page.click("[data-card=samples] a:text-is('lysozyme')")
    window.wait_for("() => document.querySelectorAll('.runs tbody tr').length === 1")
    window.page.click("td.column-name a")
    window.says("h1", "lysozyme")
    assert window.text(".tags .tag").startswith("ice")


def test_runs_are_found_by_their_name_in_the_campaign_and_by_tag(window):
    window.page.click("nav [data-view=runs]")
    window.page.wait_for_selector(".runs tbody a")
    window.page.fill("input[type=search]", "crystal")
    window.wait_for("() => document.querySelectorAll('.runs tbody tr').length === 1")
    window.says(".runs tbody a", "lysozyme")
    window.page.fill("input[type=search]", "")
    window.wait_for("() => document.querySelectorAll('.runs tbody tr').length === 3")
    window.page.select_option("select[aria-label='Only with this tag']", "ice")
    window.wait_for("() => document.querySelectorAll('.runs tbody tr').length === 1")
    assert "tag=ice" in window.page.evaluate("location.hash")


def test_a_job_is_told_with_its_run_and_leads_to_it(window, database: Path, tmp_path: Path):
    with Campaign.open(database) as campaign:
        rule = Rule(out=str(tmp_path / "out"), steps=["report"], sample="lysozyme").checked()
        campaign.database.write(lambda connection: put_rule(connection, "each night", rule, also_old=True))
        campaign.database.write(plan_jobs)
    window.says("[data-card=rules] td", "each night")
    window.says("[data-card=jobs] .chip", "waiting")
    window.page.click("[data-card=jobs] a:text-is('crystal 2')")
    window.wait_for("() => document.querySelectorAll('.runs tbody tr').length === 1")
    window.says(".runs tbody a", "lysozyme")


def test_a_tag_that_is_given_on_the_page_is_in_the_campaign(window, database: Path, run_of):
    window.page.evaluate("view => { location.hash = view; }", run_of(window, "virus"))
    window.page.click(".run > .actions >> button:text-is('Tag')")
    window.page.fill("dialog input", "best")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".tags >> text=best")
    with Campaign.open(database) as campaign:
        assert campaign.run("virus 7")["tags"] == ["best"]


def test_a_run_whose_folder_is_elsewhere_shows_its_shots(window, run_of):
    window.page.evaluate("view => { location.hash = view; }", run_of(window, "far"))
    window.says(".sentence", "its folder is not among those that are served")
    window.page.wait_for_selector("[data-card=shots] canvas[aria-label^='Shots: most in']")


def test_what_changes_in_the_database_alone_is_shown(window, database: Path):
    window.says("[data-number=shots] dd", "128")
    with Campaign.open(database) as campaign:
        campaign.add_shots("far", {"event_id": np.arange(72), "photons": np.arange(72)}, "000000001")
    window.says("[data-number=shots] dd", "200")
    window.says("[data-card=shots] .read-out", "200")


def test_a_campaign_without_shots_says_so(open_window, root: Path, tmp_path: Path):
    Campaign.open(tmp_path / "empty.db", create=True).close()
    window = open_window(root, campaign=str(tmp_path / "empty.db")).go("#/campaign")
    window.page.wait_for_selector("[data-card=shots] canvas[aria-label='Shots: nothing yet']")
    window.says("[data-number=runs] dd", "0")


def test_without_a_campaign_the_view_says_how_to_have_one(open_window, root: Path):
    window = open_window(root).go("#/campaign")
    window.says(".missing", "--campaign FILE")
    window.troubles.clear()  # the browser notes the 404
