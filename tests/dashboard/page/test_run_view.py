"""The view of one run in a browser."""

import json
from pathlib import Path


def test_the_view_tells_how_a_run_stands_and_draws_its_curves(open_window, run_of, root):
    window = open_window(root)
    window.go(run_of(window))
    assert "finished" in window.text(".title .chip")
    assert "21 Å" in window.text("[data-number=resolution] dd")
    label = "canvas[aria-label^='log-likelihood']"
    assert window.page.locator(label).get_attribute("aria-label") == "log-likelihood: log-likelihood −997"
    assert has_ink(window, label)
    assert has_ink(window, "[data-card=coverage] canvas")
    assert has_ink(window, "[data-card=fsc] canvas")


def test_curves_are_read_out_together_under_the_pointer_and_the_keys(open_window, run_of, root):
    window = open_window(root)
    window.go(run_of(window))
    window.page.wait_for_selector("canvas[aria-label^='log-likelihood: log']")
    window.page.locator("canvas[aria-label^='log-likelihood']").focus()
    window.page.keyboard.press("Home")
    said = window.page.locator("[data-card=curves] figure:has(canvas[aria-label^='resolution']) .read-out")
    window.page.wait_for_selector(".read-out >> text=at iteration 1")
    assert "at iteration 1" in said.inner_text()


def test_a_step_that_is_added_is_drawn(open_window, run_of, made_up, tmp_path: Path):
    run = made_up.write_run(tmp_path / "root" / "growing", is_finished=False)
    window = open_window(tmp_path / "root")
    window.go(run_of(window))
    window.page.wait_for_selector("canvas[aria-label='log-likelihood: log-likelihood −997']")
    with (run / "events.jsonl").open("a") as log:
        log.write(json.dumps(made_up.step_line(4)) + "\n")
    window.page.wait_for_selector("canvas[aria-label='log-likelihood: log-likelihood −996']")


def test_a_tag_is_given_and_taken_away_and_a_note_is_kept(open_window, run_of, root):
    window = open_window(root)
    window.go(run_of(window))
    window.page.click("button:text-is('Tag')")
    window.page.fill("dialog input", "good one")
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector(".tags >> text=good one")
    assert json.loads((root / "virus" / "dashboard.json").read_text())["tags"] == ["good one"]
    window.page.click("[aria-label='Remove the tag good one']")
    window.page.click("dialog .main")
    window.wait_for("() => !document.querySelector('.tags .tag')")
    window.page.click("button:text-is('Note')")
    window.page.fill("dialog textarea", "two\nlines")
    window.page.click("dialog .main")
    window.page.wait_for_selector("blockquote")
    assert window.text("blockquote") == "two\nlines"


def test_nothing_is_changed_without_consent(open_window, run_of, made_up, tmp_path: Path):
    made_up.write_run(tmp_path / "root" / "stopped", is_finished=False)
    window = open_window(tmp_path / "root")
    asked = []
    window.page.on("request", lambda request: request.method == "POST" and asked.append(request.url))
    window.go(run_of(window))
    window.page.click("button:text-is('Start')")
    window.page.wait_for_selector("dialog")
    window.page.keyboard.press("Escape")
    window.wait_for("() => !document.querySelector('dialog')")
    assert asked == []


def test_a_read_only_dashboard_offers_no_changes(open_window, run_of, root):
    window = open_window(root, read_only=True)
    window.go(run_of(window))
    window.page.wait_for_selector("#read-only:not([hidden])")
    window.says("h1", "virus")
    assert window.page.evaluate(
        "[...document.querySelectorAll('.run > .actions > button')].every(b => b.disabled)"
    )


def test_a_trouble_of_the_server_is_told_in_its_words(open_window, run_of, root):
    window = open_window(root)
    view = run_of(window)
    window.answer(
        f"/api/runs/{view.rpartition('/')[2]}/tags", {"error": "The disk is full.", "hint": "Free some."}, 409
    )
    window.go(view)
    window.page.wait_for_load_state("networkidle")  # an answer that comes later takes the words away
    window.page.click("button:text-is('Tag')")
    window.page.fill("dialog input", "some")
    window.page.keyboard.press("Enter")
    assert window.text("#trouble:not([hidden])") == "The disk is full. Free some."
    window.troubles.clear()  # the browser notes the 409


def test_settings_and_log_are_asked_for_when_they_are_opened(open_window, run_of, root):
    window = open_window(root)
    window.go(run_of(window))
    window.page.click("summary >> text=Log")
    window.says(".log", "step 3")
    window.page.click("summary >> text=Settings")
    window.says(".facts", "symmetry")


def has_ink(window, selector: str) -> bool:
    """Whether something was drawn on a canvas."""
    window.wait_for(
        """selector => {
          const canvas = document.querySelector(selector);
          if (!canvas?.width) return false;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return data.some((value, i) => i % 4 === 3 && value > 0);
        }""",
        selector,
    )
    return True
