"""Site: the job script of one computing centre, as a template that its users can read and change.

A template is a job script with {{words}}.  Lines that begin with ``#:`` are defaults for settings of
``[cluster]``; ``#: needs = [...]`` names settings that the user has to give, and ``#: about`` describes the
template.
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
# Words that a template may hold; it must hold the needed ones.
WORDS = {
    "options": "every option of sbatch that the user and the site ask for, as #SBATCH lines",
    "environment": "lines that make the command `orienteer` available",
    "work": "lines that do the work, pass on the signals of Slurm and queue the job again",
    "name": "name of the job",
    "nodes": "number of nodes",
    "ranks_per_node": "MPI ranks on each node",
    "ranks": "MPI ranks of the job",
    "gpus_per_node": "GPUs on each node; its line is left out if there are none",
    "cores_per_rank": "cores of each rank; its line is left out if none are asked for",
    "folder": "folder in which the command was given",
}
NEEDED = ("options", "environment", "work")
_OWN_FOLDER = Path(__file__).parent / "sites"


@dataclass(frozen=True)
class Site:
    """The template of a computing centre.

    text : without the ``#:`` lines; defaults : settings in these lines; needs : what the user has to give.
    """

    name: str
    path: Path
    text: str
    about: str
    defaults: dict[str, Any]
    needs: tuple[str, ...]

    def settings(self, given: ClusterSettings) -> ClusterSettings:
        """The settings of the user, completed by the defaults of the site."""
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
    """The folders of templates: first the user's own, then that of Orienteer."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "orienteer" / "sites", _OWN_FOLDER


def find_site(name: str) -> Site:
    """The site of this name, or the one in a file."""
    if "/" in name or name.endswith(ENDING):
        return read_site(Path(name).expanduser())
    known = _paths()
    if name in known:
        return read_site(known[name])
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(sorted(known))}; or give a file."
    raise SettingsError(f"there is no site '{name}'.", hint)


def all_sites() -> list[Site]:
    """Every site that can be named; a template of the user hides one of Orienteer with the same name."""
    return [read_site(path) for _, path in sorted(_paths().items())]


def _paths() -> dict[str, Path]:
    return {path.stem: path for folder in reversed(site_folders()) for path in folder.glob("*" + ENDING)}


def read_site(path: Path) -> Site:
    """Read and check a template."""
    with reading(path, "template of a site"):
        lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("#!"):
        raise FileError(path, "does not begin with a #! line.", "Begin it with  #!/bin/bash")
    check_words("\n".join(lines), WORDS, NEEDED, str(path))
    text = "\n".join(line for line in lines if not line.startswith(_MARK)) + "\n"
    # Lines of the script become empty lines here, so that errors name the right line of the file.
    header = _read_header(path, "\n".join(line[2:] if line.startswith(_MARK) else "" for line in lines))
    defaults = {name: getattr(header, name) for name in header.model_fields_set - {"about", "needs"}}
    return Site(path.stem, path, text, header.about, defaults, header.needs)


class _Header(ClusterSettings):
    """The settings in the ``#:`` lines of a template."""

    about: str = Field(default="", description="What the template is for, in one line.")
    needs: tuple[str, ...] = Field(default=(), description="Settings that the user has to give.")


def _read_header(path: Path, text: str) -> _Header:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'Write values as in a settings file, such as  #: partition = "gpu"'
        raise FileError(path, f"has an invalid line with #: ({error}).", hint) from None
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
