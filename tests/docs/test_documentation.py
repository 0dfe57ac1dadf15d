"""Every code block of the documentation runs, and every page that the program writes into is whole."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|bash|toml)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


# What takes long at the size that readers have, and how the same is said of less.
SMALLER = {
    "README.md": {
        "--frames 1000": "--frames 60 --set detector.pixels=32",
        "--resolution-A 30": "--resolution-A 30 --iterations 4",
    },
    "docs/explanation/online.md": {"--frames 150": "--frames 40", "detector.pixels=24": "detector.pixels=16"},
    "docs/how-to/compare.md": {"--frames 200": "--frames 60", "detector.pixels=32": "detector.pixels=24"},
    "docs/how-to/facility-hits.md": {"--frames 800": "--frames 300"},
    "docs/how-to/from-spinifel.md": {
        "--frames 60": "--frames 30",
        "detector.pixels=32": "detector.pixels=20",
    },
    "docs/how-to/phase.md": {
        "--frames 300": "--frames 60",
        "--iterations 5": "--iterations 2",
        "--starts 6": "--starts 2",
        "starts=6": "starts=2",
        "100*raar(0.87) 30*er": "20*raar(0.87) 5*er",
    },
    "docs/how-to/reconstruct.md": {
        "--frames 300": "--frames 60",
        "detector.pixels=32": "detector.pixels=24",
        "A 50": "A 50 --iterations 4",
    },
    "docs/how-to/simulate.md": {
        "--frames 100": "--frames 10",
        "--frames 50": "--frames 10",
        "frames = 100": "frames = 10",
    },
    "docs/how-to/validate.md": {
        "--frames 240": "--frames 60",
        "--replicates 4": "--replicates 2",
        "replicates=4": "replicates=2",
        "40*raar(0.87) 20*er": "20*raar(0.87) 5*er",
    },
    "docs/tutorials/first-density.md": {
        "pixels = 48": "pixels = 20",
        "resolution_A = 30": "resolution_A = 70",
        "beam_stop_radius_pixels = 2\n": "",
        "frames = 1000": "frames = 150",
        'symmetry = "I"\n': 'symmetry = "I"\nlevel = 4\nstarts = 1\niterations = 4\n',
        "starts = 8": 'starts = 2\nschedule = "20*raar(0.87) 5*er"\nsupport_volume_A3 = 8e6',
        "replicates = 4": "replicates = 2",
    },
    "docs/tutorials/first-experiment.md": {
        "--frames 200": "--frames 20 --set detector.pixels=32",
        "--settings realistic.toml": "--settings realistic.toml --set detector.pixels=32",
        "frames = 200": "frames = 20",
    },
}


# What is run for other pages, or for the examples of the functions, every time.
RUN_ELSEWHERE = {"docs/how-to/validate.md", "docs/how-to/phase.md"}


def blocks(text: str, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(text) if kind == language]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runnable_pages() -> list[Any]:
    """Pages with code, each with whether it is made smaller; those that are run as they stand when asked."""
    texts = {page: page.read_text() for page in PAGES}
    has_code = [
        page for page, text in texts.items()
        if blocks(text, "python") or any("orienteer " in code for code in blocks(text, "bash"))
    ]  # fmt: skip
    large = [page for page in has_code if name_of(page) in SMALLER]
    slow = [
        pytest.param(page, False, id=f"{name_of(page)} as it stands", marks=pytest.mark.slow)
        for page in large
    ]
    elsewhere = pytest.mark.slow(
        reason="the first tutorial and examples in docstrings run the same every time"
    )
    smaller = [
        pytest.param(page, True, id=name_of(page), marks=[elsewhere] * (name_of(page) in RUN_ELSEWHERE))
        for page in has_code
    ]
    return [*smaller, *slow]


@pytest.fixture(scope="session")
def sample_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages speak of, small: a structure, a geometry, hits in CXI, a stack in plain HDF5."""
    folder = tmp_path_factory.mktemp("samples")
    with contextlib.chdir(folder):
        write_structure(Path("particle.pdb"))
        run("simulate particle.pdb --frames 20 --seed 1 --out hits.h5 --set detector.pixels=32")
        for name in ("hits.cxi", "photons.emc", "detector.geom"):
            run(f"convert hits.h5 {name}")
        write_stack(Path("stack.h5"))
    return folder


def write_structure(path: Path) -> None:
    """A helix of carbon, nitrogen and oxygen, 60 A across, as a PDB file."""
    import math

    lines = []
    for i in range(60):
        x, y, z = 20 * math.cos(i / 3), 20 * math.sin(i / 3), i - 30.0
        element = "CNO"[i % 3]
        place = f"{x:8.3f}{y:8.3f}{z:8.3f}"
        lines.append(
            f"ATOM  {i + 1:5d}  {element:<3s} ALA A{i + 1:4d}    {place}  1.00 20.00          {element:>2s}"
        )
    path.write_text("\n".join([*lines, "END", ""]))


def write_stack(path: Path) -> None:
    """Frames in an HDF5 file without any layout of the field."""
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        file["photons"] = np.ones((20, 32, 32), np.uint16)


def run(command: str) -> None:
    """Run an ``orienteer`` command line in this process, which has its libraries loaded already."""
    from orienteer.cli.main import main

    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(output),
        patch.object(sys, "argv", ["orienteer", *shlex.split(command, comments=True)]),
        pytest.raises(SystemExit) as leaving,
    ):
        main()
    assert not leaving.value.code, f"orienteer {command}\n{output.getvalue()}"


@pytest.mark.timeout(900)  # the first density takes two minutes on a core of its own
@pytest.mark.parametrize(("page", "smaller"), runnable_pages())
def test_the_commands_and_the_code_of_a_page_run(
    page: Path, smaller: bool, sample_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text()
    for large, small in SMALLER.get(name_of(page), {}).items() if smaller else ():
        assert large in text
        text = text.replace(large, small)
    # A file that the page itself makes would be in its way: commands write over nothing.
    made = re.findall(r"--out (\S+)|convert \S+ (\S+)", "\n".join(blocks(text, "bash")))
    for sample in sample_files.iterdir():
        if sample.name not in {name for names in made for name in names}:
            (tmp_path / sample.name).write_bytes(sample.read_bytes())
    for name, told in re.findall(r"^```toml title=\"(\S+)\"\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(told)
    monkeypatch.chdir(tmp_path)
    for code in blocks(text, "bash"):
        for line in code.replace("\\\n", " ").splitlines():
            if line.startswith("orienteer "):
                run(line.removeprefix("orienteer "))
    exec(compile("\n".join(blocks(text, "python")), str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p.read_text(), "toml")], ids=name_of)
def test_the_settings_of_a_page_are_valid(page: Path, tmp_path: Path) -> None:
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    for text in blocks(page.read_text(), "toml"):
        path = tmp_path / "settings.toml"
        path.write_text(text)
        load_settings(Settings, path)


def test_the_help_of_every_command_is_in_the_reference() -> None:
    from orienteer.cli.main import app

    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    names = [command.name for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        own = [each.name or each.callback.__name__ for each in group.typer_instance.registered_commands]  # type: ignore[union-attr]
        names += [group.name, *(f"{group.name} {name}" for name in own)]
    assert sorted(re.findall(r"<!-- help: ([\w ]+) -->", page)) == sorted(name for name in names if name)


def test_the_commands_stand_in_the_chapters_of_the_help_text() -> None:
    from orienteer.cli.main import CHAPTERS

    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    wanted = []
    for chapter, modules in CHAPTERS.items():
        wanted += [f"## {chapter}", *(f"### {module.__name__.rpartition('.')[2]}" for module in modules)]
    found = [line for line in page.splitlines() if line.startswith("##") and line != "### campaign"]
    assert found == wanted


def test_no_page_links_to_a_missing_file() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_public_name_is_shown_in_code_that_runs() -> None:
    import orienteer

    scripts = [path.read_text() for path in (ROOT / "examples").rglob("*.py")]
    code = "\n".join([*scripts, *(code for page in PAGES for code in blocks(page.read_text(), "python"))])
    names = set(orienteer.__all__) - {"__version__"}
    assert len(names) <= 30
    assert not {name for name in names if not re.search(rf"\borienteer\.{name}\b", code)}
