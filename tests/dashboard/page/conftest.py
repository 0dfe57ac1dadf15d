"""A browser without a window, the page of a real dashboard in it, and answers that were made up."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
ARGUMENTS = [
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
    "--disable-gpu-rasterization", "--disable-gpu-compositing",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
# Only WebGL is drawn by the driver on the CPU, which takes twice as long for all of a page; the browser then
# reads back what WebGL has drawn, and warns of it.
READS_BACK = "GPU stall due to ReadPixels"
PATIENCE_MS = 30_000
MARKUP = '<img src=x onerror="window.wasRun = true"><b>bold</b>'


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, drawing on the CPU."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs: pip install 'orienteer[test]'")
    if not CHROMIUM:
        pytest.skip("needs Chromium, none here")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


class Window:
    """A page of the browser, and everything that went wrong in it."""

    def __init__(self, page: Any, address: str, token: str) -> None:
        self.page, self.address, self.token = page, address, token
        self.troubles: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, said: Any) -> None:
        if said.type in ("error", "warning") and READS_BACK not in said.text:
            self.troubles.append(said.text)

    def go(self, view: str = "#/") -> "Window":
        """Enter with the token and show a view."""
        self.page.goto(f"{self.address}/?token={self.token}")
        self.page.wait_for_selector("#connection.open")
        self.page.evaluate("view => { location.hash = view; }", view)
        return self

    def answer(self, path: str, told: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Give a made-up answer to what the page asks, in the place of the server; bytes go as they are."""
        body = told if isinstance(told, bytes) else json.dumps(told)
        kind = "application/octet-stream" if isinstance(told, bytes) else "application/json"
        self.page.route(
            lambda address: address.split("?")[0].endswith(path),
            lambda route: route.fulfill(
                status=status, body=body, headers={"Content-Type": kind, **(headers or {})}
            ),
        )

    def text(self, selector: str) -> str:
        """What is written in the first element that fits, once it is there."""
        return str(self.page.locator(selector).first.inner_text())

    def says(self, selector: str, words: str) -> None:
        """Wait until some element that fits holds these words."""
        condition = """([selector, words]) =>
            [...document.querySelectorAll(selector)].some(found => found.textContent.includes(words))"""
        self.wait_for(condition, [selector, words])

    def restart(self, server: type[Any], root: Path) -> None:
        """Serve a folder again at the address of the server that was stopped."""
        port = int(self.address.rpartition(":")[2])
        again = server([root], port=port, token=self.token)
        self.after.callback(again.close)
        thread = threading.Thread(target=again.run)
        thread.start()
        self.after.callback(thread.join, 30)
        self.after.callback(again.stop)

    def wait_for(self, condition: str, argument: Any = None) -> None:
        """Wait until an expression of JavaScript is true."""
        # Asked in every frame, the browser would draw without end, on the CPU.
        self.page.wait_for_function(condition, arg=argument, polling=50)


@pytest.fixture
def open_window(browser: Any, made_up: SimpleNamespace, tmp_path: Path) -> Iterator[Callable[..., Window]]:
    """Open the page of a dashboard over a folder; whatever the page complains of fails the test."""
    with ExitStack() as stack:
        windows = []

        def opened(root: Path, read_only: bool = False, campaign: str = "", **options: Any) -> Window:
            log = tmp_path / "refused.log"
            server, client = stack.enter_context(
                made_up.serving(root, log=log, is_read_only=read_only, campaign=campaign)
            )
            page = browser.new_page(**{"viewport": {"width": 1300, "height": 900}, **options})
            stack.callback(page.close)
            window = Window(page, f"http://127.0.0.1:{server.port}", made_up.token)
            window.server, window.client, window.after = server, client, stack
            windows.append(window)
            return window

        yield opened
        for window in windows:
            assert not window.troubles


@pytest.fixture
def run_of(made_up: SimpleNamespace) -> Callable[..., str]:
    """The address of the view of a run."""
    return lambda window, search="", view="run": f"#/{view}/{made_up.run_id(window.client, search)}"


def live_answers() -> dict[str, Any]:
    """What the server tells of a live run, with event ids as large as they can be."""
    edges = np.geomspace(100, 1000, 21)
    single, junk = np.zeros(20, int), np.zeros(20, int)
    single[8:11], junk[2:15] = (20, 60, 16), 2
    return {
        "counters": {"received": 12345, "filtered": 2000, "dropped": 45, "processed": 10300, "duplicates": 7},
        "hits": 122,
        "hit_rate": {
            "t_s": [1.7e9, 1.7e9 + 60],
            "shots": [5000, 5300],
            "hits": [50, 72],
            "singles": [40, 56],
        },
        "last_minute": {
            "t_s": [1.7e9 + 90, 1.7e9 + 91],
            "shots": [100, 100],
            "hits": [10, 20],
            "singles": [8, 16],
        },
        "size_A": {"edges": edges.tolist(), "by_kind": {"single": single.tolist(), "junk": junk.tolist()}},
        "kinds": {"single": 96, "junk": 26},
        "now": {"frames_per_s": 2100.0, "hits_per_s": 21.5, "latency_s": 0.8},
        "recent_hits": ["18446744073709551615", "9223372036854775819", "3"],
    }


@pytest.fixture
def live_window(open_window: Callable[..., Window], run_of: Callable[..., str], root: Path) -> Window:
    """The view of a live run whose answers are made up; the frames are those of three events."""
    window = open_window(root)
    frame = np.zeros((12, 16), np.uint16)
    frame[1, 2], frame[5] = 9, 65535
    powder = np.arange(12 * 16, dtype=np.float32)
    window.live = live_answers()
    view = run_of(window, view="live")
    run = view.rpartition("/")[2]
    window.answer(f"/api/live/{run}", window.live)
    window.answer(f"/api/live/{run}/powder", powder.tobytes(), headers={"X-Shape": "12,16"})
    ids, kind = window.live["recent_hits"][::-1], [3, 1, 1]
    columns = {"kind": kind, "size_A": [None, 300.0, 310.0], "photons": [70, 800, 900]}
    window.answer(f"/api/runs/{run}/frames", {"total": 122, "event_id": ids, "columns": columns})
    for event in window.live["recent_hits"]:
        window.answer(f"/frame/{event}", frame.tobytes(), headers={"X-Shape": "12,16"})
    return window.go(view)


@pytest.fixture
def markup() -> str:
    """A name that would run a script, if it were ever taken for HTML."""
    return MARKUP
