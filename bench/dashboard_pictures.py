"""The pictures of docs/how-to/dashboard.md: the page of the live demo, as a browser shows it.

    python bench/dashboard_pictures.py [--run FOLDER]

Runs the live demo, which takes some minutes, enters it into a campaign, and writes dashboard_live.png and
dashboard_campaign.png to docs/images.  With --run it shows a live run that is there.  Needs Chromium.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 300_000
# Pixels of the picture for one of the page, so that it can be printed; and those below the last part.
SCALE, MARGIN = 1.5, 4
# Drawn by the CPU, as there may be no other.
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
ORIENTEER = [sys.executable, "-m", "orienteer"]


def main() -> None:
    """Take both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, help="a live run, in place of the demo")
    run = parser.parse_args().run
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if run is None:
            subprocess.run([*ORIENTEER, "live", "--demo", "--out", folder / "demo"], check=True)
            run = folder / "demo" / "run"
        database = folder / "campaign.db"
        subprocess.run([*ORIENTEER, "campaign", "init", database], check=True)
        add = ["campaign", "add", database, run, "--name", "night 1", "--sample", "icosahedron"]
        subprocess.run([*ORIENTEER, *add], check=True)
        rule = [
            "campaign",
            "rule",
            database,
            "each-run",
            "--steps",
            "hits,reconstruct,report",
            "--out",
            folder,
        ]
        subprocess.run([*ORIENTEER, *rule], check=True)
        command = [*ORIENTEER, "serve", run, "--campaign", database, "--port", "0", "--json", "--read-only"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                take(first_json(server))
            finally:
                server.terminate()


def first_json(server: Any) -> dict[str, Any]:
    """What the server prints at its start."""
    text = ""
    while not text.endswith("}\n"):
        text += server.stdout.readline()
    return dict(json.loads(text))


def take(told: dict[str, Any]) -> None:
    """Open both views and keep what they show."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 1460}, device_scale_factor=SCALE)
        page.set_default_timeout(120_000)
        page.goto(told["address"])
        page.goto(f"http://127.0.0.1:{told['port']}/#/live")
        page.wait_for_selector("[data-card=map] canvas.surface")
        page.wait_for_selector("[data-card=sizes] canvas[aria-label*='most in']")
        # From the head of the page to the end of the volume; the curves below it are as on the page of a run.
        keep(page, "dashboard_live", "[data-card=map] .volume")
        page.evaluate("location.hash = '#/campaign'")
        page.wait_for_selector("[data-card=shots] canvas[aria-label*='most in']")
        page.select_option("[data-card=shots] select", "hit_score")
        page.check("[data-card=shots] input[type=checkbox]")
        page.wait_for_selector("[data-card=rules] td")
        keep(page, "dashboard_campaign", "[data-card=rules]")
        browser.close()


def keep(page: Page, name: str, last: str) -> None:
    """Write what can be seen once it is drawn, down to the end of the last part."""
    page.wait_for_timeout(3000)
    end = page.eval_on_selector(last, "part => part.getBoundingClientRect().bottom")
    shown = page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": end + MARGIN})
    path = PICTURES / f"{name}.png"
    picture = Image.open(io.BytesIO(shown)).convert("RGB")
    # A palette is a third of the size; rare colours, such as those of kinds of hits, keep their place in it.
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    assert path.stat().st_size < MOST_BYTES, "The pages of the documentation are to stay small."


if __name__ == "__main__":
    main()
