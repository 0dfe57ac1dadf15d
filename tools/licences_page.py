"""Write docs/reference/licences.md: what Orienteer depends on, and under which licences.

    python tools/licences_page.py

Names come from pyproject.toml, licences from the metadata of the packages that are installed here.
"""

import re
import tomllib
from importlib.metadata import PackageMetadata, PackageNotFoundError, distribution, metadata, requires
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "licences.md"
# Large packages for GPUs, which are seldom installed where this page is written: as their project states it.
STATED = {"cupy-cuda12x": "MIT", "cupy-cuda13x": "MIT"}
FAMILIES = "BSD|MIT|Apache|MPL|LGPL|GPL|ISC|PSF|Python|MPICH|HPND|Zlib|Unlicense|MIT-CMU"
HEAD = """# Licences of what Orienteer uses

Orienteer itself is BSD-3-Clause. It contains no code of others; these packages are installed beside it: the
first table always, those of an extra with `pip install 'orienteer[EXTRA]'`. This page is written by
`python tools/licences_page.py` from the metadata of the packages themselves.
"""


def name_of(requirement: str) -> str:
    """The package that a requirement names, as package indices write it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def dependencies() -> dict[str, list[str]]:
    """Packages by extra; the extra "" is what is always there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    names = {extra: [name_of(each) for each in listed] for extra, listed in groups.items()}
    return {extra: [name for name in listed if name != "orienteer"] for extra, listed in names.items()}


def licence(name: str) -> str:
    """The licence of an installed package in few words; empty where it is neither installed nor stated."""
    try:
        told: PackageMetadata = metadata(name)
    except PackageNotFoundError:
        return STATED.get(name, "")
    classifiers = [
        each.split(" :: ")[-1] for each in told.get_all("Classifier") or [] if "License ::" in each
    ]
    text = (told.get("License") or "").strip()
    short = text.splitlines()[0] if text and len(text) < 60 else ""
    return str(told.get("License-Expression") or short or ", ".join(classifiers) or _of_text(text, name))


def _of_text(text: str, name: str) -> str:
    """The kinds of licences that a long text, or the files of a package with that name, speak of."""
    files = [path for path in distribution(name).files or [] if path.name.upper().startswith("LICEN")]
    texts = [text, *(path.read_text() for path in files)]
    return ", ".join(sorted(set(re.findall(rf"\b({FAMILIES})\b", " ".join(texts))))) or "see its files"


def family(words: str) -> set[str]:
    """What kind of licence these words mean, whatever else they say."""
    return set(re.findall(FAMILIES, words))


def brought_along(names: list[str]) -> list[str]:
    """Packages that these need in turn, extras apart, as far as they are installed here."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        try:
            listed = requires(waiting.pop()) or []
        except PackageNotFoundError:
            continue
        needed = [name_of(each) for each in listed if not re.search("extra ==|win32|Windows", each)]
        new = [name for name in needed if name not in found and name not in names and licence(name)]
        found.update(dict.fromkeys(new))
        waiting += new
    return sorted(found)


def table(names: list[str]) -> str:
    """One line for each package."""
    lines = [f"| {name} | {licence(name) or 'not installed where this page was written'} |" for name in names]
    return "\n".join(["| package | licence |", "|---|---|", *lines, ""])


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for extra, names in dependencies().items():
        if names:
            parts.append(f"\n## {f'Extra `{extra}`' if extra else 'Always'}\n\n{table(names)}")
        if not extra:
            parts.append(f"\nWhat these bring along:\n\n{table(brought_along(names))}")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.relative_to(ROOT))
