"""The picture of docs/how-to/report.md: the beginning of the report of a demo, as a browser shows it.

    orienteer demo --out demo
    python bench/report_picture.py demo

Writes docs/images/report.png.  Needs Chromium.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from dashboard_pictures import ARGUMENTS, MOST_BYTES, PICTURES, SCALE, few_colours

WIDTH, MARGIN = 1080, 24


def main() -> None:
    """Take it."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    report = Path(sys.argv[1]).resolve() / "run" / "report.html"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 1600}, device_scale_factor=SCALE)
        page.goto(report.as_uri())
        page.wait_for_timeout(3000)  # the surface is drawn
        # From the heading to the planes through the density.
        last = page.locator("figure").nth(2).bounding_box()
        assert last is not None
        height = last["y"] + last["height"] + MARGIN
        page.set_viewport_size({"width": WIDTH, "height": int(height)})
        page.wait_for_timeout(1000)
        shown = page.screenshot()
        browser.close()
    path = PICTURES / "report.png"
    few_colours(Image.open(io.BytesIO(shown)).convert("RGB")).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    assert path.stat().st_size < MOST_BYTES, "The pages of the documentation are to stay small."


if __name__ == "__main__":
    main()
