"""The whole page: well-formed, alone in the world, safe, and there whatever is missing."""

import base64
import html
import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.compute.progress import listening
from orienteer.errors import OrienteerError
from orienteer.report.evidence import gather
from orienteer.report.page import draw_page, write_report
from orienteer.volume.opening import open_volume

# Damage is what most of these tests are about; one of them listens to the warnings.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SECTIONS = [
    "result", "trust", "measured", "intensities", "iterations", "methods", "cite", "settings", "origin",
    "again", "files",
]  # fmt: skip


def check_page(page: Any) -> None:
    assert page.wrong == []
    assert len(set(page.ids)) == len(page.ids)
    assert page.fetched == []
    for tag, attributes in page.elements:
        if tag == "img":
            assert attributes.get("alt")
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes.get("aria-label")
        assert not any(name.startswith("on") for name in attributes)
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS


def test_the_page_is_well_formed_and_fetches_nothing(
    reported_once: Path, read_page: Callable[[Path], Any]
) -> None:
    written = reported_once / "report.html"
    page = read_page(written)
    check_page(page)
    content = written.read_text()
    assert "@import" not in content
    assert "url(" not in content
    policies = [a for tag, a in page.elements if tag == "meta" and a.get("http-equiv")]
    assert "default-src 'none'" in str(policies[0]["content"])


def test_every_link_inside_the_page_has_its_place_and_every_file_is_there(
    reported_once: Path, read_page: Callable[[Path], Any]
) -> None:
    page = read_page(reported_once / "report.html")
    links = [str(a["href"]) for tag, a in page.elements if tag == "a"]
    for link in links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        elif not link.startswith(("data:", "https://doi.org/")):
            assert (reported_once / link).exists()
    assert "density.mrc" in links
    assert "validation/density_half_2.mrc" in links
    assert "open_in_chimerax.cxc" in links


def test_every_curve_and_picture_that_the_run_has_is_there(
    reported_once: Path, read_page: Callable[[Path], Any]
) -> None:
    page = read_page(reported_once / "report.html")
    figures = {name.removeprefix("figure-") for name in page.ids if name.startswith("figure-")}
    assert figures - {"poses"} == {
        "log-likelihood", "change", "temperature", "resolution", "radial-mean", "half-correlation",
        "directions", "fluence", "photons", "mean-frame", "intensity", "density", "projections", "fsc",
        "prtf", "intensity-correlation", "intensity-error",
    }  # fmt: skip


def test_the_page_says_from_where_on_the_density_is_not_measured(reported_once: Path) -> None:
    edge_A = json.loads((reported_once / "phasing.json").read_text())["edge_A"]
    row = re.search(r"Edge of the data</th>\s*<td>(.*?)</td>", (reported_once / "report.html").read_text())
    assert row is not None
    assert row[1].startswith(f"{edge_A:.3g} Å; the constraints alone")


def test_volumes_have_three_digits(run_folder: Path, edit: Callable[..., None]) -> None:
    def row_of(name: str) -> str | None:
        write_report(run_folder)
        page = (run_folder / "report.html").read_text()
        found = re.search(f"{name}</th>\\s*<td>(.*?)</td>", page)
        return found and found[1]

    edit(run_folder / "phasing.json", support_volume_A3=17023207.4, particle_volume_A3=4261234.5)
    assert row_of("Volume of the support") == "17,000,000 Å³"
    assert row_of("Volume of the particle") == "4,260,000 Å³"
    edit(run_folder / "phasing.json", particle_volume_A3=0.0)  # not known to older files
    assert row_of("Volume of the particle") is None


def test_the_maps_in_the_page_are_those_of_the_files(reported_once: Path) -> None:
    content = (reported_once / "report.html").read_text()
    stored = json.loads(content.partition('id="maps">')[2].partition("</script>")[0])
    assert [one["name"] for one in stored] == ["Density", "Half 1", "Half 2"]
    first = stored[0]
    assert max(first["shape"]) <= 96
    voxels = np.frombuffer(base64.b64decode(first["voxels"]), np.uint8)
    assert len(voxels) == np.prod(first["shape"])
    values = first["low"] + voxels / 255 * (first["high"] - first["low"])
    density = open_volume(reported_once / "density.mrc")
    mass_shown = values.sum() * np.prod(first["voxel_A"])
    mass = float(density.values.sum()) * float(np.prod(density.voxel_size))
    assert mass_shown == pytest.approx(mass, rel=0.15)  # what rings around the particle is cut off
    assert density.values.min() < first["level"] < density.values.max()


HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def test_names_from_outside_stay_names(
    run_folder: Path, tmp_path: Path, edit: Callable[..., None], read_page: Callable[[Path], Any]
) -> None:
    folder = tmp_path / HOSTILE.replace("/", "_")
    shutil.move(run_folder, folder)
    described = json.loads((folder / "run.json").read_text())
    described["machine"]["host"] = HOSTILE
    described["input"]["path"] = f"/data/{HOSTILE}"
    described["input"]["polarisation"] = HOSTILE
    edit(folder / "run.json", **described)
    edit(folder / "phasing.json", unit=HOSTILE, remarks=[HOSTILE], hand=HOSTILE)
    edit(folder / "validation" / "validation.json", statement=HOSTILE, remarks=[HOSTILE])
    settings = (folder / "settings.toml").read_text().replace('symmetry = "I"', f"symmetry = '''{HOSTILE}'''")
    (folder / "settings.toml").write_text(settings)
    page = read_page(write_report(folder))
    check_page(page)
    assert [tag for tag, _ in page.elements].count("script") == 2  # the maps and the viewer
    assert not any(a.get("src") == "x" for tag, a in page.elements)
    assert page.text.count("alert(1)") >= 5


PARTS = [
    "detector.h5", "events.jsonl", "intensity.h5", "orientations.h5", "settings.toml", "density.mrc",
    "support.mrc", "phasing.json", "validation/validation.json", "validation/density_half_2.mrc",
    "validation/mask.mrc",
]  # fmt: skip


@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "garbage"])
def test_a_run_of_damaged_files_still_has_a_page(
    run_folder: Path, read_page: Callable[[Path], Any], damage: str
) -> None:
    for name in PARTS:
        spoil(run_folder / name, damage)
    page = read_page(write_report(run_folder))
    check_page(page)
    assert "No resolution is claimed." in page.text
    if damage != "missing":
        for name in ("intensity.h5", "orientations.h5", "settings.toml", "density.mrc", "phasing.json"):
            assert f"{name}: " in page.text


def spoil(file: Path, damage: str) -> None:
    if damage == "missing":
        file.unlink()
        return
    whole = file.read_bytes()
    contents = {"empty": b"", "torn": whole[: len(whole) // 2] + b"[", "garbage": b"\x93garbage" * 50}
    file.write_bytes(contents[damage])


def test_damage_is_a_warning_and_what_was_never_there_is_none(run_folder: Path, bare_folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_report(bare_folder)
    spoil(run_folder / "settings.toml", "garbage")
    (run_folder / "phasing.json").write_text("{")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        write_report(run_folder)
    told = [str(one.message) for one in heard]
    assert any("settings.toml" in words for words in told)
    assert any("phasing.json" in words for words in told)
    assert len(told) == len(set(told)) == 2


@pytest.mark.parametrize("content", ["{}", '{"format": "orienteer-run"}', "[1]", "{"])
def test_a_damaged_description_is_a_sentence_too(
    run_folder: Path, read_page: Callable[[Path], Any], content: str
) -> None:
    (run_folder / "run.json").write_text(content)
    page = read_page(write_report(run_folder))
    check_page(page)
    assert "run.json" in page.text
    assert "not known" in page.text


@pytest.mark.parametrize("file", ["phasing.json", "validation/validation.json"])
def test_values_of_another_kind_are_left_out(
    run_folder: Path, read_page: Callable[[Path], Any], file: str
) -> None:
    """Whatever stands behind a key, the page comes."""
    path = run_folder / file
    whole = json.loads(path.read_text())
    kinds = (None, 3, -1.5, "text", [None, "x", 1], {"q_inv_A": 3, "values": "x", "correlation": [1]}, True)
    for first, second in pairwise(kinds):
        keys = [key for key in whole if key not in ("format", "version")]
        wrong = {key: first if index % 2 else second for index, key in enumerate(keys)}
        path.write_text(json.dumps({"format": whole["format"], "version": whole["version"], **wrong}))
        evidence = gather(run_folder)
        (run_folder / "density.mrc").unlink(missing_ok=True)  # drawing it takes long, and says nothing here
        check_page(read_page(draw_page(evidence, run_folder, "")))


def test_a_run_that_was_only_reconstructed_claims_nothing(
    bare_folder: Path, read_page: Callable[[Path], Any]
) -> None:
    page = read_page(write_report(bare_folder))
    check_page(page)
    assert "Not validated: run orienteer validate. No resolution is claimed." in page.text
    assert "There is no density yet: run orienteer phase." in page.text
    assert not (bare_folder / "open_in_chimerax.cxc").exists()


def test_a_run_that_was_only_begun_has_a_page(bare_folder: Path, read_page: Callable[[Path], Any]) -> None:
    for name in ("events.jsonl", "intensity.h5", "intensity.mrc", "orientations.h5", "checkpoint.h5"):
        (bare_folder / name).unlink(missing_ok=True)
    page = read_page(write_report(bare_folder))
    check_page(page)
    assert "The run has not been started." in page.text


def test_moved_data_are_not_counted(
    run_folder: Path, edit: Callable[..., None], read_page: Callable[[Path], Any], tmp_path: Path
) -> None:
    given = json.loads((run_folder / "run.json").read_text())["input"]
    edit(run_folder / "run.json", input={**given, "path": str(tmp_path / "gone.h5")})
    assert "The photons could not be counted." in read_page(write_report(run_folder)).text
    changed = tmp_path / "changed.h5"
    changed.write_bytes(Path(given["path"]).read_bytes() + b"x")
    edit(run_folder / "run.json", input={**given, "path": str(changed)})
    assert "has changed since the run was begun" in read_page(write_report(run_folder)).text


def test_a_folder_to_give_away_holds_page_maps_and_script(
    run_folder: Path, read_page: Callable[[Path], Any], tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "given away"
    assert write_report(run_folder, out) == out / "report.html"
    shutil.rmtree(run_folder)
    links = [str(a["href"]) for tag, a in read_page(out / "report.html").elements if tag == "a"]
    local = [link for link in links if not link.startswith(("#", "data:", "https://doi.org/"))]
    assert "density.mrc" in local
    assert "intensity.mrc" in local
    for link in local:
        assert (out / link).is_file()
    assert not list(out.rglob("*.part"))


def test_what_is_no_run_is_refused_and_nothing_is_written(tmp_path: Path, run_folder: Path) -> None:
    with pytest.raises(OrienteerError, match="holds no run"):
        write_report(tmp_path)
    with pytest.raises(OrienteerError, match="no such folder"):
        write_report(tmp_path / "absent")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OrienteerError, match="is a file"):
        write_report(run_folder, file)
    assert not list(tmp_path.glob("report.html"))


# A browser without a window may draw no frames, and would call nobody to draw one.
FRAMES = "<script>window.requestAnimationFrame = (draw) => setTimeout(draw, 1);</script>"
# Turns, cuts and switches the surface as a reader would, and keeps what the canvas shows after each step.
PLAY = """<script>
(async () => {
  const canvas = document.querySelector("#viewer canvas"), seen = {};
  const slider = document.querySelector("#viewer input[type=range]");
  const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, cancelable: true}));
  const drag = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {pointerId: 1, clientX: x}));
  canvas.setPointerCapture = () => {};  // there is no pointer to capture
  const steps = {
    first: () => {}, key: () => key("ArrowLeft"), home: () => key("Home"),
    drag: () => { drag("pointerdown", 10); drag("pointermove", 60); drag("pointerup", 60); },
    again: () => document.querySelector("#viewer button").click(),
    zoom: () => key("+"), back: () => key("Home"),
    half: () => document.querySelectorAll("#viewer input[type=radio]")[1].click(),
    cut: () => { slider.value = "600"; slider.dispatchEvent(new Event("input")); },
  };
  for (const [name, step] of Object.entries(steps)) {
    step();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    seen[name] = canvas.toDataURL();
  }
  seen.level = document.querySelector("#viewer output").textContent;
  document.title = JSON.stringify(seen);
})();
</script>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium, which is not installed")
def test_a_browser_shows_the_surface_and_turns_it(reported_once: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    written = (reported_once / page.name).read_text()
    played = written.replace("</head>", f"{FRAMES}</head>").replace("</body>", f"{PLAY}</body>")
    page.write_text(played)
    options = [
        "--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
        "--ignore-gpu-blocklist", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--no-first-run", f"--user-data-dir={tmp_path / 'browser'}",
        "--virtual-time-budget=5000", "--window-size=300,300", "--dump-dom",
    ]  # fmt: skip
    program = str(shutil.which("chromium"))
    shown = subprocess.run(
        [program, *options, page.resolve().as_uri()], capture_output=True, text=True, timeout=240, check=False
    ).stdout
    if "</html>" not in shown:
        pytest.skip("chromium does not run here")
    viewer = shown.partition('id="viewer"')[2].partition(">")[0]
    sorry = shown.partition('id="no-webgl"')[2].partition(">")[0]
    assert ("hidden" in viewer) != ("hidden" in sorry)
    if "hidden" in viewer:
        pytest.skip("chromium has no WebGL2 here")
    assert "Å</div>" in shown.partition('class="scale-bar"')[2][:80]
    seen = json.loads(html.unescape(shown.partition("<title>")[2].partition("</title>")[0]))
    assert seen["first"] == seen["home"] == seen["again"] == seen["back"]
    assert len({seen[name] for name in ("first", "key", "drag", "zoom", "half", "cut")}) == 6
    stored = json.loads(shown.partition('id="maps">')[2].partition("</script>")[0])
    low, high = max(0, stored[1]["low"]), stored[1]["high"]
    assert float(seen["level"].split()[0]) == pytest.approx(low + 0.6 * (high - low), rel=0.01)


def test_another_run_is_not_written_over(run_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    before = (other / "density.mrc").read_bytes()
    with pytest.raises(OrienteerError, match="folder of a run"):
        write_report(run_folder, other)
    assert (other / "density.mrc").read_bytes() == before


def test_whoever_waits_for_the_page_hears_how_far_it_is(run_folder: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    with listening(lambda *step: heard.append(step)):
        assert write_report(run_folder) == run_folder / "report.html"
    drawn = [(done, total) for what, done, total in heard if what == "Drawing the report"]
    assert drawn == [(done, len(SECTIONS)) for done in range(len(SECTIONS) + 1)]
