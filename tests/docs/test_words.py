"""Pages speak of commands, flags, settings and files of the source that there are."""

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
# Of other programs, in pages that name these.
FOREIGN = frozenset(
    {"--build-arg", "--nv", "--rm", "--no-index", "--find-links", "--wheel-dir", "--no-binary", "--mpi",
     "--default-settings", "--mode", "--keep", "--slow", "--version"}
)  # fmt: skip
FLAG = re.compile(r"(?<![\w-])--[a-z][A-Za-z0-9-]*")


@cache
def commands() -> tuple[str, ...]:
    """Every command, groups and those inside of them."""
    from orienteer.cli.main import app

    names = [command.name for command in app.registered_commands if command.name]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        own = [each.name or each.callback.__name__ for each in group.typer_instance.registered_commands]  # type: ignore[union-attr]
        names += [str(group.name), *(f"{group.name} {name}" for name in own)]
    return tuple(names)


@cache
def flags(command: str) -> frozenset[str]:
    """What a command takes."""
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "tools" / "docs_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    text = hooks.help_text(command)
    switches = {flag.replace("--no-", "--") for flag in FLAG.findall(text)}
    return frozenset(
        {*FLAG.findall(text), *switches, *(f.replace("--", "--no-") for f in switches), "--debug"}
    )


def code_of(page: Path) -> list[str]:
    """Lines of code blocks and inline code."""
    text = page.read_text().replace("\\\n", " ")
    if page.name == "benchmarks.md":
        return []
    found = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
    lines = [line for block in found for line in block.splitlines()]
    return [
        line
        for line in [*lines, *inline]
        if not line.startswith(("#SBATCH", "python bench")) and line != "orienteer patterns"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_flags_of_a_page_exist(page: Path) -> None:
    every = frozenset().union(*map(flags, commands())) | FOREIGN
    for line in code_of(page):
        named = FLAG.findall(line.partition(" #")[0])
        assert not set(named) - every, line
        called = re.match(r"^(?:\$ )?orienteer ([a-z]+)(?: ([a-z]+))?(.*)", line)
        if called is None or (called[1] == "demo" and not named):
            continue
        assert called[1] in commands(), line
        inner = f"{called[1]} {called[2]}"
        own = flags(inner if inner in commands() else called[1])
        assert not set(FLAG.findall(called[0].partition(" #")[0])) - own, line


def test_files_of_the_source_that_pages_name_exist() -> None:
    there = [
        path.as_posix()
        for folder in ("src", "tests", "bench", "tools")
        for path in (ROOT / folder).rglob("*.*")
    ]
    for page in PAGES:
        for name in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:py|cu))`", page.read_text()):
            assert any(path.endswith(f"/{name}") for path in there), f"{page.name} names {name}"


def test_settings_that_pages_name_exist() -> None:
    from orienteer.run.settings import Settings
    from orienteer.settings.describing import describe_settings

    rows = {(row.section, row.key) for row in describe_settings(Settings)}
    sections = {section for section, _ in rows}
    for page in PAGES:
        text = page.read_text()
        for section, key in re.findall(r"(?:`\[|--set \"?)(\w+)(?:\] |\.)(\w+)", text):
            # Other programs have sections of the same names.
            if section in sections and not page.stem.startswith("from-"):
                assert (section, key) in rows, f"{page.name} names [{section}] {key}"
