"""The table of runs in a browser."""

import json
import time
from pathlib import Path


def test_a_run_in_the_table_leads_to_its_view(open_window, root):
    window = open_window(root).go()
    assert "21 Å" in window.text("td.column-resolution_A")
    window.page.click("td.column-name a")
    window.says("h1", "virus")
    window.page.go_back()
    window.page.wait_for_selector("td.column-name a")


def test_a_thousand_runs_are_paged_searched_and_sorted_quickly(open_window, made_up, tmp_path: Path):
    for number in range(1000):
        made_up.write_run(tmp_path / "many" / f"run_{number:04d}", n_steps=1 + number % 7)
    window = open_window(tmp_path / "many").go()
    window.wait_for("() => document.querySelector('.filters .quiet').textContent === '1000 runs'")
    assert window.page.locator("tbody tr").count() == 50
    begin = time.perf_counter()
    window.page.click("th.column-name button")
    window.says("tbody a", "run_0000")
    window.page.click("nav.pager button:last-child")
    window.says("tbody tr:last-child a", "run_0999")
    window.page.fill("input[type=search]", "run_0412")
    window.wait_for("() => document.querySelectorAll('tbody tr').length === 1")
    # Three answers and three drawings: far from what would be felt, even on a busy machine.
    assert time.perf_counter() - begin < 20
    assert "search=run_0412" in window.page.evaluate("location.hash")


def test_names_tags_and_notes_that_hold_markup_stay_text(open_window, made_up, tmp_path: Path, markup: str):
    name = markup.replace("/", "")
    run = made_up.write_run(tmp_path / "root" / name)
    (run / "dashboard.json").write_text(
        json.dumps({"tags": [markup], "sample": markup, "notes": [{"text": markup}]})
    )
    window = open_window(tmp_path / "root").go()
    assert window.text("td.column-name a").endswith(name)
    assert window.text("td.column-name .tag") == markup
    window.page.click("td.column-name a")
    window.says("h1", "onerror")
    assert window.text("blockquote") == markup
    assert window.page.evaluate("document.querySelectorAll('main img, main b:not(.read-out b)').length") == 0
    assert window.page.evaluate("window.wasRun") is None


def test_the_table_is_reached_and_walked_with_keys(open_window, made_up, tmp_path: Path):
    for name in ("one", "two"):
        made_up.write_run(tmp_path / "root" / name)
    window = open_window(tmp_path / "root").go("#/?sort=name")
    window.page.wait_for_selector("tbody a")
    window.page.keyboard.press("/")
    assert window.page.evaluate("document.activeElement.type") == "search"
    window.page.locator("tbody a").first.focus()
    window.page.keyboard.press("ArrowDown")
    assert window.page.evaluate("document.activeElement.textContent").endswith("two")
    window.page.keyboard.press("Enter")
    window.says("h1", "two")


def test_a_run_that_appears_is_shown_without_asking(open_window, made_up, tmp_path: Path):
    made_up.write_run(tmp_path / "root" / "first")
    window = open_window(tmp_path / "root").go()
    window.page.wait_for_selector("tbody a")
    made_up.write_run(tmp_path / "root" / "second")
    window.wait_for("() => document.querySelectorAll('tbody a').length === 2")


def test_a_phone_needs_no_sideways_scrolling(open_window, root):
    window = open_window(root, viewport={"width": 390, "height": 800}).go()
    window.page.wait_for_selector("tbody a")
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
