"""write_report: the whole page about a run, in one self-contained file."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import orienteer
from orienteer.compute.atomic import atomic_path, unwritable
from orienteer.compute.progress import steps
from orienteer.errors import FileError
from orienteer.phase.files import DENSITY_MRC, SUPPORT
from orienteer.report import chimerax
from orienteer.report.chimerax import Map
from orienteer.report.evidence import HALVES, MASK, Evidence, gather
from orienteer.report.markup import Markup, element, joined
from orienteer.report.measured import draw_measured
from orienteer.report.methods import methods
from orienteer.report.opening import claim, draw_opening, unusual
from orienteer.report.phasing_facts import PhasingFacts, phasing_facts
from orienteer.report.planes import cropped
from orienteer.report.provenance import draw_commands, draw_files, draw_origin, draw_settings
from orienteer.report.references import draw_references
from orienteer.report.results import draw_intensities, draw_iterations, draw_result
from orienteer.report.states import draw_states, n_states
from orienteer.report.trust import draw_trust
from orienteer.report.validation_facts import ValidationFacts, validation_facts
from orienteer.report.words import moment
from orienteer.run.directory import RunDirectory
from orienteer.run.files import REPORT

if TYPE_CHECKING:
    from orienteer.run.run import Run

NAME = REPORT
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_report(run: Run | str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write ``report.html`` about a run, and a script that opens its maps in ChimeraX.

    The page is self-contained and loads nothing from other sites.  A sentence replaces each part of the run
    that is missing or damaged; damage also raises a warning.

    run : the run, or its folder.
    out : a folder for the page, the script and copies of the maps; by default that of the run.
    Returns the path of the page.

    >>> import orienteer
    >>> from orienteer.particle.bodies import sphere
    >>> beam, detector = orienteer.Beam(wavelength_A=2), orienteer.square_detector(16, 0.005, 0.2)
    >>> frames = orienteer.SimulateSettings(frames=500, photons_per_frame=300)
    >>> source = orienteer.simulate(sphere(20), beam, detector, frames, seed=1)
    >>> settings = orienteer.EmcSettings(iterations=1, level=1, diameter_A=40)
    >>> run = orienteer.Run.create("ball", source, settings, seed=1)
    >>> steps = list(run.iterate())
    >>> print(write_report(run))
    ball/report.html
    """
    home = Path(run.path if hasattr(run, "path") else run)
    evidence = gather(home)
    for words in evidence.damages:
        warnings.warn(words, stacklevel=2)
    folder = home if out is None else Path(out)
    if out is not None and RunDirectory(folder).is_run:
        raise FileError(
            folder, "is the folder of a run, whose maps would be overwritten.", "Give another --out."
        )
    if out is not None:
        _copy_maps(evidence, folder)
    script = _write_script(evidence, folder)
    page = folder / NAME
    content = draw_page(evidence, folder, script)
    with atomic_path(page) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return page


def draw_page(evidence: Evidence, folder: Path, script: str) -> str:
    """The page as text.

    folder : where it will be.
    script : the name of the ChimeraX script; empty if there is none.
    """
    phasing = _facts_of_phasing(evidence)
    validation = _facts_of_validation(evidence)
    said = claim(validation, evidence.validation.missing if evidence.validation.is_damaged else "")
    sentences, cited = methods(evidence, phasing, validation)
    now = moment(datetime.now(UTC).isoformat())
    origin = f"{now}, Orienteer {orienteer.__version__}"
    parts: list[tuple[str, str, Callable[[], Markup]]] = [
        ("Result", "result", lambda: draw_result(evidence, phasing)),
        ("How far to trust it", "trust", lambda: draw_trust(evidence, validation, phasing)),
        *(
            [("States", "states", lambda: draw_states(evidence, validation))]
            if n_states(evidence) > 1
            else []
        ),
        ("What was measured", "measured", lambda: draw_measured(evidence)),
        ("Intensity", "intensities", lambda: draw_intensities(evidence)),
        ("How the run went", "iterations", lambda: draw_iterations(evidence)),
        ("Methods", "methods", lambda: _draw_methods(sentences)),
        ("How to cite", "cite", lambda: joined([_citation(evidence), draw_references(cited)])),
        ("Settings", "settings", lambda: draw_settings(evidence)),
        ("Origin", "origin", lambda: draw_origin(evidence, phasing, validation, origin)),
        ("Do it again", "again", lambda: draw_commands(evidence, phasing)),
        ("Files", "files", lambda: draw_files(folder, evidence, script)),
    ]
    with ThreadPoolExecutor() as pool:
        drawn = [(title, name, pool.submit(draw)) for title, name, draw in parts]
        told = steps(drawn, "Drawing the report")
        sections = [_section(title, name, content.result()) for title, name, content in told]
    links = [element("li", element("a", title, href=f"#{name}")) for title, name, _ in parts]
    body = element(
        "body",
        draw_opening(evidence, said, unusual(evidence, phasing, validation)),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *sections),
        element("script", _own("isosurface.js")),
    )
    title = f"{evidence.path.resolve().name}: Orienteer report"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Whatever the page holds, the browser loads nothing from elsewhere.
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="generator", content=f"Orienteer {orienteer.__version__}"),
        element("title", title),
        element("style", _own("style.css")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _section(title: str, name: str, content: Markup) -> Markup:
    return element("section", element("h2", title), content, id=name)


def _own(name: str) -> Markup:
    """The content of a file of this package, to be put into the page."""
    return Markup(files("orienteer.report").joinpath(name).read_text(encoding="utf-8"))


def _draw_methods(sentences: list[str]) -> Markup:
    if not sentences:
        return element("p", "Too little is known about the run to describe the methods.", class_="missing")
    note = element("p", "A draft from the facts of the run: check and shorten it.", class_="quiet")
    return joined([note, element("blockquote", element("p", " ".join(sentences)))])


def _citation(evidence: Evidence) -> Markup:
    versions = evidence.described.get("versions")
    version = versions.get("orienteer", "") if isinstance(versions, dict) else ""
    return element(
        "p", f"The Orienteer developers, Orienteer (version {version}), and the papers behind the methods:"
    )


def _facts_of_phasing(evidence: Evidence) -> PhasingFacts | None:
    said = evidence.phasing.value
    return None if said is None else phasing_facts(said)


def _facts_of_validation(evidence: Evidence) -> ValidationFacts | None:
    said = evidence.validation.value
    return None if said is None else validation_facts(said)


def _copy_maps(evidence: Evidence, folder: Path) -> None:
    """Copy the maps to another folder, laid out as in the run."""
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "is a file, not a folder for a report.", "Give the path of a folder.")
    names = [
        DENSITY_MRC,
        SUPPORT,
        *HALVES,
        MASK,
        *(path.name for path in sorted(evidence.path.glob("intensity*.mrc"))),
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.samefile(evidence.path):
            return
        for name in names:
            if (evidence.path / name).is_file():
                (folder / name).parent.mkdir(exist_ok=True)
                with atomic_path(folder / name) as temporary:
                    shutil.copyfile(evidence.path / name, temporary)
    except OSError as error:
        raise unwritable(folder, error) from error


def _write_script(evidence: Evidence, folder: Path) -> str:
    """Write the ChimeraX script beside the maps; without a density, remove an old script."""
    density = evidence.density.value
    if density is None:
        (folder / chimerax.NAME).unlink(missing_ok=True)
        return ""
    level, *of_halves = evidence.levels
    maps = [Map(DENSITY_MRC, "density", level, "#7a9fd4", shown=True)]
    for index, level in enumerate(of_halves):
        colour = ("#e08c4d", "#4da894")[index]
        maps.append(Map(HALVES[index], f"half {index + 1}", level, colour))
    if evidence.mask.value is not None:
        maps.append(Map(MASK, "mask", 0.5, "#b0b0b0", transparency=70))
    shown = cropped(density)
    extent_A = max(n * size for n, size in zip(shown.shape, shown.voxel_size, strict=True))
    try:
        return chimerax.write_script(folder, maps, extent_A).name
    except OSError as error:
        raise unwritable(folder, error) from error
