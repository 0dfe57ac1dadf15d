"""Site: how jobs look at one computing centre, as a file that its users can read and change.

A template is a job script with {{words}}.  Lines that begin with ``#:`` are settings of ``[cluster]`` that
hold there unless the user says otherwise; ``#: needs = [...]`` names settings that the user has to give, and
``#: about`` says what the template is for.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.template import check_words
from orienteer.compute.reading import reading
from orienteer.errors import FileError, SettingsError
from orienteer.settings.explaining import explain
from orienteer.settings.loading import key_lines

ENDING = ".sh"
_MARK = "#:"
# What a template may say; a job cannot do without the needed ones.
WORDS = {
    "options": "every option of sbatch that the user and the site ask for, as #SBATCH lines",
    "environment": "lines that make the command `orienteer` be there",
    "work": "lines that do the work, pass on the notices of Slurm and queue again",
    "name": "name of the job",
    "nodes": "number of nodes",
    "ranks_per_node": "MPI ranks of a node",
    "ranks": "MPI ranks of the job",
    "gpus_per_node": "GPUs of a node; its line is left out where there are none",
    "cores_per_rank": "cores of a rank; its line is left out where none are asked for",
    "folder": "folder in which the command was given",
}
NEEDED = ("options", "environment", "work")
_OWN_FOLDER = Path(__file__).parent / "sites"


@dataclass(frozen=True)
class Site:
    """The template of a computing centre.

    text : without the ``#:`` lines; defaults : what those say, by name; needs : what the user has to give.
    """

    name: str
    path: Path
    text: str
    about: str
    defaults: dict[str, Any]
    needs: tuple[str, ...]

    def settings(self, given: ClusterSettings) -> ClusterSettings:
        """What the user has given, and the rest as the site has it."""
        named = {name: getattr(given, name) for name in given.model_fields_set}
        merged = ClusterSettings(**{**self.defaults, **named})
        for name in self.needs:
            if not getattr(merged, name):
                raise SettingsError(
                    f"jobs for the site {self.name} need --{name.replace('_', '-')}.",
                    f"Give it, or write  {name} = ...  under [cluster].",
                )
        return merged


def site_folders() -> tuple[Path, ...]:
    """Where templates are looked for: the user's own folder first, then those that come with Orienteer."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "orienteer" / "sites", _OWN_FOLDER


def find_site(name: str) -> Site:
    """The site of this name, or the one that a file describes."""
    if "/" in name or name.endswith(ENDING):
        return read_site(Path(name).expanduser())
    known = _paths()
    if name in known:
        return read_site(known[name])
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(sorted(known))}; or give a file."
    raise SettingsError(f"there is no site '{name}'.", hint)


def all_sites() -> list[Site]:
    """Every site that can be named; the user's own hide others of the same name."""
    return [read_site(path) for _, path in sorted(_paths().items())]


def _paths() -> dict[str, Path]:
    return {path.stem: path for folder in reversed(site_folders()) for path in folder.glob("*" + ENDING)}


def read_site(path: Path) -> Site:
    """A template, checked."""
    with reading(path, "template of a site"):
        lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("#!"):
        raise FileError(path, "does not begin with the line of a shell.", "Begin it with  #!/bin/bash")
    check_words("\n".join(lines), WORDS, NEEDED, str(path))
    text = "\n".join(line for line in lines if not line.startswith(_MARK)) + "\n"
    # Lines of the script become empty ones, so that errors name the line of the file.
    header = _read_header(path, "\n".join(line[2:] if line.startswith(_MARK) else "" for line in lines))
    defaults = {name: getattr(header, name) for name in header.model_fields_set - {"about", "needs"}}
    return Site(path.stem, path, text, header.about, defaults, header.needs)


class _Header(ClusterSettings):
    """What the ``#:`` lines of a template say."""

    about: str = Field(default="", description="What the template is for, in one line.")
    needs: tuple[str, ...] = Field(default=(), description="Settings that the user has to give.")


def _read_header(path: Path, text: str) -> _Header:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'Write values as in a settings file, such as  #: partition = "gpu"'
        raise FileError(path, f"has a wrong line with #: ({error}).", hint) from None
    places = {keys: f"{path} line {line}" for keys, line in key_lines(text).items()}
    try:
        header = _Header.model_validate(tree)
    except ValidationError as error:
        raise explain(error, _Header, places, path) from None
    for name in header.needs:
        if name not in ClusterSettings.model_fields:
            known = ", ".join(ClusterSettings.model_fields)
            raise FileError(path, f"needs '{name}', which is no setting.", f"Settings of jobs are: {known}.")
    return header
