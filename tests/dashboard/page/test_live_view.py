"""The view of a live run in a browser."""

from orienteer.source.frame_tags import read_frame_tags
from orienteer.source.left_out import read_excluded


def test_the_counters_are_large_and_add_up(live_window):
    assert live_window.text("[data-number=received] dd") == "12.3k"
    assert live_window.text("[data-number=dropped] dd") == "45"
    assert "Received = filtered + dropped + processed." in live_window.text(".live > p[role=status]")
    assert "7 duplicates" in live_window.text(".live > p[role=status]")
    assert "96" in live_window.text("[data-number='single particles'] dd")


def test_events_that_are_not_accounted_for_are_told(live_window):
    live_window.live["counters"]["processed"] -= 3
    live_window.answer("/api/live/" + live_window.page.url.rpartition("/")[2], live_window.live)
    live_window.page.reload()
    live_window.says("p.trouble[role=status]", "3 events")


def test_sizes_are_stacked_by_kind_and_read_out_bin_by_bin(live_window):
    canvas = live_window.page.locator("[data-card=sizes] canvas")
    live_window.says("[data-card=sizes] .read-out", "single 96")
    canvas.focus()
    for _ in range(9):
        live_window.page.keyboard.press("ArrowRight")
    # One empty bin stands before the first that holds something.
    assert "single 60" in live_window.text("[data-card=sizes] .read-out")
    assert "Å" in live_window.text("[data-card=sizes] .read-out")


def test_the_powder_stands_upright_and_tells_its_pixels(live_window):
    live_window.says("[data-card=powder] .read-out", "colours")
    live_window.page.locator("[data-card=powder] canvas").scroll_into_view_if_needed()
    box = live_window.page.locator("[data-card=powder] canvas").bounding_box()
    live_window.page.mouse.move(box["x"] + 3, box["y"] + box["height"] - 3)
    # Pixel 0 is the lowest and leftmost.
    assert live_window.text("[data-card=powder] .read-out") == "x 0, y 0: 0 photons"


def test_a_hit_is_enlarged_and_excluded_by_its_whole_number(live_window, root):
    """Event ids are larger than the numbers of JavaScript; none of their digits may be lost."""
    live_window.page.click(".thumbnail >> nth=0")
    assert live_window.text("dialog h2") == "Frame 18446744073709551615"
    live_window.page.click("dialog >> text=Exclude")
    live_window.page.click("dialog .main >> text=Exclude")
    live_window.page.wait_for_selector("dialog >> text=Take back in")
    assert read_excluded(root / "virus" / "excluded.json").tolist() == [18446744073709551615]
    live_window.page.keyboard.press("ArrowRight")
    live_window.says("dialog h2", "9223372036854775819")


def test_hits_are_told_with_their_kind_and_size(live_window):
    live_window.says(".thumbnail", "single, 310 Å")
    assert live_window.text(".thumbnail >> nth=2") == "junk"
    live_window.page.click(".thumbnail >> nth=0")
    live_window.says("dialog p", "single · 310 Å · 900 photons")


def test_a_hit_is_tagged_and_the_tag_is_taken_away(live_window, root):
    live_window.page.click(".thumbnail >> nth=1")
    live_window.page.click("dialog >> text=Tag")
    live_window.page.fill("dialog input", "ice")
    live_window.page.keyboard.press("Enter")
    live_window.page.wait_for_selector("dialog .tags >> text=ice")
    assert read_frame_tags(root / "virus" / "frame_tags.json")["ice"].tolist() == [9223372036854775819]
    live_window.says(".thumbnail", "ice")
    # The tag is that of this frame alone.
    live_window.page.keyboard.press("ArrowRight")
    live_window.wait_for("() => !document.querySelector('dialog .tags .tag')")
    live_window.page.keyboard.press("ArrowLeft")
    live_window.page.click("[aria-label='Remove the tag ice']")
    live_window.wait_for("() => !document.querySelector('dialog .tags .tag')")
    assert read_frame_tags(root / "virus" / "frame_tags.json") == {}


def test_the_hit_rate_of_the_last_minute_is_shown_by_second(live_window):
    label = "[data-card='hit-rate'] canvas[aria-label='hit rate: hit rate {}']"
    live_window.page.wait_for_selector(label.format("1.358"))  # 72 of 5300 shots
    live_window.page.select_option("[data-card='hit-rate'] select", "last_minute")
    live_window.page.wait_for_selector(label.format("20"))
    live_window.page.locator("[data-card='hit-rate'] canvas").focus()
    live_window.page.keyboard.press("Home")
    assert "10" in live_window.text("[data-card='hit-rate'] .read-out b")


def test_hits_that_come_faster_than_their_pictures_wait_until_those_are_drawn(live_window):
    page, run = live_window.page, live_window.page.url.rpartition("/")[2]
    page.wait_for_selector(".thumbnail")
    picture = {"body": b"\0" * 8, "headers": {"X-Shape": "2,2"}}
    held = []
    page.route("**/frame/77", lambda route: held.append(route))
    page.route("**/frame/79", lambda route: route.fulfill(**picture))
    for newest in ("77", "78", "79"):
        live_window.live["recent_hits"] = [newest]
        live_window.answer(f"/api/live/{run}", live_window.live)
        with page.expect_response(f"**/api/live/{run}"):
            page.locator("[data-card=powder] select").dispatch_event("change")
    page.wait_for_selector("[data-event='77']")
    assert page.locator("[data-event='79']").count() == 0
    held[0].fulfill(**picture)
    page.wait_for_selector("[data-event='79']")


def test_hits_are_one_stop_of_the_tab_key_and_walked_with_arrows(live_window):
    page = live_window.page
    page.wait_for_selector(".thumbnail >> nth=2")
    assert page.evaluate("[...document.querySelectorAll('.thumbnail')].map(b => b.tabIndex)") == [0, -1, -1]
    page.locator(".thumbnail").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # there is no further one
    assert page.evaluate("document.activeElement.dataset.event") == "3"
    page.keyboard.press("Enter")
    live_window.says("dialog h2", "Frame 3")


def test_without_live_runs_the_view_says_how_to_begin_one(open_window, root):
    window = open_window(root).go("#/live")
    window.says("main", "orienteer live --demo")
