"""The page when its server goes and comes back."""

from orienteer.dashboard.serving import Server


def test_a_server_that_is_gone_is_told_and_found_again(open_window, made_up, root):
    window = open_window(root).go()
    window.page.wait_for_selector("tbody a")
    window.server.stop()
    window.page.wait_for_selector("#connection.gone")
    assert window.text("#connection").startswith("server gone, trying again in")
    # Nothing is taken away: what was shown is still there to be read.
    assert window.page.locator("tbody a").count() == 1
    window.troubles.clear()  # the browser notes every try
    made_up.write_run(root / "meanwhile")
    window.restart(Server, root)
    window.page.wait_for_selector("#connection.open")
    window.wait_for("() => document.querySelectorAll('tbody a').length === 2")
    window.troubles.clear()


def test_tries_become_rarer_and_never_stop(open_window, root):
    window = open_window(root)
    window.page.add_init_script(
        """window.waits = [];
        window.WebSocket = class { constructor() { setTimeout(() => this.onclose(), 0); } };
        const later = window.setTimeout;
        window.setTimeout = (act, wait, ...more) => {
          if (wait > 100) window.waits.push(wait);
          return later(act, Math.min(wait, 20), ...more);
        };"""
    )
    window.page.goto(f"{window.address}/?token={window.token}")
    window.wait_for("() => window.waits.length > 12")
    waits = window.page.evaluate("window.waits.slice(0, 13)")
    assert waits[0] < 1000
    assert waits[4] > 4 * waits[0]
    assert max(waits) <= 1.25 * 15_000


def test_a_browser_without_token_is_told_where_to_find_one(open_window, root):
    window = open_window(root).go()
    window.page.wait_for_selector("tbody a")
    window.page.context.clear_cookies()
    window.page.evaluate("location.hash = '#/campaign'")
    window.says("#trouble", "Open the address that orienteer serve has printed.")
    window.troubles.clear()  # the browser notes the 401


def test_an_answer_that_comes_after_its_view_was_left_changes_nothing(open_window, run_of, root):
    window = open_window(root)
    held = []
    view = run_of(window)
    window.go()
    window.page.wait_for_selector("tbody a")
    window.page.route(f"**/api/runs/{view.rpartition('/')[2]}", lambda route: held.append(route))
    window.page.evaluate("view => { location.hash = view; }", view)
    window.says("h1", "…")
    window.page.evaluate("location.hash = '#/?sort=name'")
    window.page.wait_for_selector("tbody a")
    assert len(held) == 1
    with window.page.expect_response("**/api/runs/*"):
        held[0].continue_()
    window.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    assert window.page.title() == "Runs · Orienteer"
