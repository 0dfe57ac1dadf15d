"""Surface and slices of a volume in a browser."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from orienteer.volume.opening import write_volume
from orienteer.volume.volume import Volume

N = 32


@pytest.fixture
def marked(made_up, tmp_path: Path) -> Path:
    """A run whose density is a ball in the middle and a brighter, smaller one on its +x side."""
    run = made_up.write_run(tmp_path / "root" / "ball")
    x, y, z = np.meshgrid(*[np.arange(N) - N // 2] * 3, indexing="ij")
    density = 0.5 * (x**2 + y**2 + z**2 < 49) + 1.0 * ((x - 9) ** 2 + y**2 + z**2 < 9)
    write_volume(run / "density.mrc", Volume(density.astype(np.float32), 3.0))
    return tmp_path / "root"


def drawn(window) -> np.ndarray:
    """Red, green, blue and opacity of the surface's canvas (rows, columns, 4), as it is drawn now."""
    window.wait_for("() => document.querySelector('canvas.surface')?.width > 300")
    window.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    told = window.page.evaluate(
        """() => {
          const from = document.querySelector("canvas.surface");
          const to = document.createElement("canvas");
          [to.width, to.height] = [from.width, from.height];
          return new Promise(done => requestAnimationFrame(() => {
            from.dispatchEvent(new Event("theme"));  // draws again, in the frame in which it is read
            requestAnimationFrame(() => {
              to.getContext("2d").drawImage(from, 0, 0);
              done(to.toDataURL());  // as a file, since lists of a million numbers take half a minute
            });
          }));
        }"""
    )
    picture = Image.open(io.BytesIO(base64.b64decode(told.partition(",")[2])))
    return np.array(picture.convert("RGBA"))


def test_the_surface_is_drawn_turned_and_changed_in_level(open_window, run_of, marked):
    window = open_window(marked)
    window.go(run_of(window))
    window.wait_for("() => document.querySelector('.sliders output')?.textContent !== ''")
    before = drawn(window)
    seen = before[..., 3] > 0
    assert 0.01 < seen.mean() < 0.9
    surface = window.page.locator("canvas.surface")
    surface.focus()
    for _ in range(5):
        window.page.keyboard.press("ArrowRight")
    turned = drawn(window)
    assert (turned != before).any()
    window.page.locator(".sliders input").first.fill("200")
    # At a high level only the small ball is left.
    assert (drawn(window)[..., 3] > 0).sum() < 0.6 * (turned[..., 3] > 0).sum()


def test_the_cross_hair_is_linked_and_tells_place_and_value(open_window, run_of, marked):
    window = open_window(marked)
    window.go(run_of(window))
    window.says(".planes .read-out", "x 0, y 0, z 0")
    # Values come in 255 steps up to the brightest: 0.5 is the 128th.
    assert window.text(".planes .read-out") == "x 0, y 0, z 0 Å: 0.502"
    window.page.locator(".planes canvas").first.focus()
    for _ in range(9):
        window.page.keyboard.press("ArrowRight")
    # The first plane stands on z: to the right is +x, where the bright ball is.
    assert window.text(".planes .read-out") == "x 27, y 0, z 0 Å: 1"


def test_slices_alone_are_shown_where_there_is_no_webgl(open_window, run_of, marked):
    window = open_window(marked)
    window.page.add_init_script(
        """const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
          return kind === "webgl2" ? null : get.call(this, kind, ...more);
        };"""
    )
    window.go(run_of(window))
    window.says(".planes .read-out", "x 0")
    assert "no WebGL2" in window.text("[data-card=map] .missing")


def test_the_axes_of_a_volume_are_those_of_the_file(open_window, run_of, made_up, tmp_path: Path):
    """A voxel at [x, y, z] is found at x, y and z, whatever way its bytes have come."""
    run = made_up.write_run(tmp_path / "root" / "spot")
    density = np.zeros((16, 16, 16), np.float32)
    density[8 + 2, 8 - 3, 8 + 5] = 1
    write_volume(run / "density.mrc", Volume(density, 2.0))
    window = open_window(tmp_path / "root")
    window.go(run_of(window))
    window.says(".planes .read-out", "x 0")
    found = window.page.evaluate(
        """async run => {
          const { getVolume } = await import("/static/volume.js");
          const volume = await getVolume(run, "density", 1, 96);
          const i = volume.bytes.indexOf(255), n = volume.n, middle = Math.floor(n / 2);
          return [Math.floor(i / n / n) - middle, (Math.floor(i / n) % n) - middle, (i % n) - middle];
        }""",
        window.page.evaluate("location.hash").rpartition("/")[2],
    )
    assert found == [2, -3, 5]
