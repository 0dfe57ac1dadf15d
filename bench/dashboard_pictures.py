"""The pictures of docs/how-to/dashboard.md: a short beam time that is simulated, as a browser shows its page.

    python bench/dashboard_pictures.py [--folder FOLDER]

Replays streams of four samples into live runs of a campaign, which takes some minutes.  dashboard_live.png is
taken in the middle of the last one, dashboard_campaign.png while a worker does what a rule says of all runs.
Both come to docs/images.  With --folder all of it stays there.  Needs Chromium.
"""

import argparse
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from orienteer.cli.live_demo import SETTINGS

PICTURES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 300_000
# Pixels of the picture for one of the page, so that it can be printed; and those below the last part.
SCALE, MARGIN = 1.5, 12
# Drawn by the CPU, as there may be no other.
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
ORIENTEER = [sys.executable, "-m", "orienteer"]
WAIT_s = 600


class Stream(NamedTuple):
    """A run of the beam time: its sample, how many shots come how fast, and how many of them meet nothing."""

    name: str
    sample: str
    shots: int
    rate_Hz: float
    empty: float = 0.85


EARLIER = (
    Stream("r0041", "virus, 1:8", 6000, 600, 0.96),
    Stream("r0042", "virus, 1:4", 4000, 400, 0.94),
    Stream("r0043", "virus, 1:2", 4000, 400, 0.9),
)
LAST = Stream("r0044", "virus", 16_000, 200)
# Of the shots of the last run, when its picture is taken.
SHARE = 0.6


def main() -> None:
    """Take both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where runs and database stay; what is there is used")
    kept = parser.parse_args().folder
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = kept or Path(name)
        folder.mkdir(exist_ok=True)
        database = folder / "campaign.db"
        if not database.exists():
            say("campaign", "init", database)
            steps = "hits,reconstruct,report"
            say("campaign", "rule", database, "each-run", "--steps", steps, "--out", folder / "auto")
            for stream in EARLIER:
                with replayed(folder, stream) as command:
                    subprocess.run(command, check=True)
        serve = ["serve", str(folder), "--campaign", str(database), "--port", "0", "--json", "--read-only"]
        with started(serve, stdout=subprocess.PIPE) as server, browser_page(first_json(server)) as page:
            with replayed(folder, LAST) as command, started(command[len(ORIENTEER) :]) as live:
                take_live(page)
                live.wait(WAIT_s)
            with started(["campaign", "work", str(database), "--every-s", "1"]):
                take_campaign(page)
                # Nothing is left at work behind us.
                say("campaign", "rule", database, "each-run", "--off")
                wait_until(lambda: not any(job["status"] == "working" for job in jobs_of(page)))


def say(*words: str | Path) -> None:
    """Carry out a command."""
    subprocess.run([*ORIENTEER, *map(str, words)], check=True)


@contextmanager
def started(words: list[str], **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """A command that goes on beside us, and is ended with the block."""
    with subprocess.Popen([*ORIENTEER, *words], text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def replayed(folder: Path, stream: Stream) -> Iterator[list[str]]:
    """The command that receives a stream into a run, while the stream is there."""
    settings, frames = folder / "demo.toml", folder / f"{stream.name}.h5"
    settings.write_text(SETTINGS)
    if not frames.exists():
        differs = (f"frames={stream.shots}", f"seed={stream.shots}", f"empty_fraction={stream.empty}")
        change = [word for each in differs for word in ("--set", f"simulate.{each}")]
        say("simulate", "--settings", settings, *change, "--out", frames)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = ["replay", str(frames), "--to", address, "--rate", str(stream.rate_Hz), "--dense"]
    receive = ["live", "--source", address, "--out", str(folder / stream.name), "--settings", str(settings)]
    receive += ["--campaign", str(folder / "campaign.db"), "--sample", stream.sample]
    with started(words, stdout=subprocess.DEVNULL):
        yield [*ORIENTEER, *receive]


def first_json(server: Any) -> dict[str, Any]:
    """What the server prints at its start."""
    text = ""
    while not text.endswith("}\n"):
        text += server.stdout.readline()
    return dict(json.loads(text))


@contextmanager
def browser_page(told: dict[str, Any]) -> Iterator[Page]:
    """The page of the server in a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 1600}, device_scale_factor=SCALE)
        page.set_default_timeout(120_000)
        page.goto(told["address"])
        yield page
        browser.close()


def asked(page: Page, path: str) -> Any:
    """What the server answers."""
    return page.evaluate("path => fetch(path).then(answer => answer.json())", path)


def jobs_of(page: Page) -> list[dict[str, Any]]:
    """The jobs of the campaign."""
    return list(asked(page, "/api/campaign")["jobs"])


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look once a second."""
    end = time.monotonic() + WAIT_s
    while not is_so():
        assert time.monotonic() < end, "It did not come to what the picture is to show."
        time.sleep(1)


def take_live(page: Page) -> None:
    """The live view in the middle of the last run: frames come, and the map has begun to grow."""

    def shots() -> int:
        runs = [each for each in asked(page, "/api/runs")["runs"] if each["name"] == LAST.name]
        live = asked(page, f"/api/live/{runs[0]['id']}") if runs else {}
        return int(live.get("counters", {}).get("processed", 0))

    wait_until(lambda: shots() > SHARE / 2 * LAST.shots)
    page.evaluate("location.hash = '#/live'")
    page.wait_for_selector("[data-card=map] canvas.surface")
    page.wait_for_selector("[data-card=sizes] canvas[aria-label*='most in']")
    page.select_option("[data-card=hit-rate] select", "last_minute")
    wait_until(lambda: shots() > SHARE * LAST.shots)
    # The card ends with the volume; the curves below it are as on the page of a run.
    hide = "parts => parts.forEach(part => (part.style.display = 'none'))"
    page.eval_on_selector_all("[data-card=map] .volume ~ *", hide)
    # Less is hidden inside of a surface that lies further out.
    page.eval_on_selector(
        "[data-card=map] input[type=range]",
        "slider => { slider.value = 0.75 * slider.value; slider.dispatchEvent(new Event('input')); }",
    )
    keep(page, "dashboard_live", "[data-card=map]")


def take_campaign(page: Page) -> None:
    """The campaign while a step is worked on, some are done, and others wait."""

    def is_busy() -> bool:
        states = [job["status"] for job in jobs_of(page)]
        return states.count("done") >= 4 and "working" in states

    wait_until(is_busy)
    page.evaluate("location.hash = '#/campaign'")
    page.wait_for_selector("[data-card=shots] canvas[aria-label*='most in']")
    page.select_option("[data-card=shots] select", "hit_score")
    page.check("[data-card=shots] input[type=checkbox]")
    page.wait_for_selector("[data-card=rules] td")
    keep(page, "dashboard_campaign", ".cards")


def keep(page: Page, name: str, last: str) -> None:
    """Write what can be seen once it is drawn, down to the end of the last part."""
    page.wait_for_timeout(3000)
    end = page.eval_on_selector(last, "part => part.getBoundingClientRect().bottom")
    shown = page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": end + MARGIN})
    path = PICTURES / f"{name}.png"
    picture = Image.open(io.BytesIO(shown)).convert("RGB")
    few_colours(picture).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    assert path.stat().st_size < MOST_BYTES, "The pages of the documentation are to stay small."


def few_colours(picture: Image.Image) -> Image.Image:
    """The picture in 256 colours, a third of the size: the commonest as they are, the others near.

    Rare colours, such as those of kinds of hits, keep their place.
    """
    common = sorted(picture.getcolors(picture.width * picture.height), reverse=True)[:96]
    rare = picture.quantize(160, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in common for part in colour] + list(rare or [])[: 3 * 160])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
