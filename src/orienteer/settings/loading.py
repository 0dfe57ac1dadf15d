"""Settings from a TOML file and ``section.key=value`` overrides; errors say where and what to write."""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from orienteer.compute.nearest import meant_instead
from orienteer.errors import FileError, SettingsError
from orienteer.settings.dragonfly_names import PAGE, is_of_dragonfly
from orienteer.settings.explaining import explain
from orienteer.settings.section import Section

S = TypeVar("S", bound=Section)


class Override(str):
    """A "section.key=value" text.

    typed : what the user actually typed, such as a flag; error messages quote it.
    """

    __slots__ = ("typed",)
    typed: str

    def __new__(cls, text: str, typed: str) -> Self:
        """The text, with what the user typed."""
        override = super().__new__(cls, text)
        override.typed = typed
        return override


def load_settings(
    sections: type[S],
    path: Path | None = None,
    overrides: Sequence[str] = (),
    used: Collection[str] | None = None,
) -> S:
    """Load settings from a file and overrides; settings that neither names keep their defaults.

    Parameters
    ----------
    sections : the class whose fields are the sections, such as ``orienteer.run.settings.Settings``.
    path : TOML file, or None for the defaults.
    overrides : "section.key=value" texts, applied in order on top of the file.  The value is read as TOML;
        if it is not valid TOML, or the setting is a text, it is taken as text, so paths need no quotes.
    used : sections that the command reads; a file may hold others, for other commands, but an override of
        another section is an error, because it would have no effect.  None: all.
    """
    text = _read(path) if path else ""
    tree = _parse(text, path)
    places = {keys: f"{path} line {line}" for keys, line in key_lines(text).items()}
    parsed = [(override, *_parse_for(sections, override)) for override in overrides]
    _refuse_unused(sections, parsed, used)
    _check_overridden(sections, tree, {keys for _, keys, _ in parsed}, places, path)
    for override, keys, value in parsed:
        _insert(tree, keys, value, override)
        places[keys] = override.typed if isinstance(override, Override) else f"--set {override}"
    try:
        return sections.model_validate(tree)
    except ValidationError as error:
        raise explain(error, sections, places, path) from None


def _refuse_unused(
    sections: type[Section],
    parsed: Sequence[tuple[str, tuple[str, ...], Any]],
    used: Collection[str] | None,
) -> None:
    for override, keys, _ in parsed:
        if used is not None and keys[0] in sections.model_fields and keys[0] not in used:
            raise SettingsError(
                f"--set {override}: this command does not read [{keys[0]}].",
                f"This command reads {', '.join(f'[{name}]' for name in used)}.",
            )


def _check_overridden(
    sections: type[Section],
    tree: Mapping[str, Any],
    overridden: set[tuple[str, ...]],
    places: Mapping[tuple[str, ...], str],
    path: Path | None,
) -> None:
    """Refuse a wrong value in the file even if an override replaces it; the rest is checked later."""
    try:
        sections.model_validate(tree)
    except ValidationError as error:
        for number, problem in enumerate(error.errors(include_url=False)):
            keys = tuple(str(part) for part in problem["loc"])
            if any(keys[: len(hidden)] == hidden for hidden in overridden):
                raise explain(error, sections, places, path, number) from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(
            path,
            "there is no such settings file.",
            meant_instead(path, "Check the path; orienteer settings prints a file with all defaults."),
        ) from None
    except UnicodeDecodeError:
        raise FileError(
            path,
            "is not a text file, so it holds no settings.",
            "Give a TOML file; orienteer settings prints one.",
        ) from None
    except OSError as error:
        raise FileError(
            path, f"cannot be read ({error.strerror}).", "Check the path and its permissions."
        ) from None


def _parse(text: str, path: Path | None) -> dict[str, Any]:
    if is_of_dragonfly(text):
        raise SettingsError(
            f"{path}: is a configuration of Dragonfly, whose settings have other names.", PAGE
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'Settings are TOML: [section] headers, then lines such as  frames = 1000  or  name = "text".'
        raise SettingsError(f"{path}: not valid TOML: {error}.", hint) from None


def parse_override(override: str) -> tuple[tuple[str, ...], Any]:
    """Split "section.key=value" into its keys and its value.

    >>> parse_override("simulate.frames=1000")
    (('simulate', 'frames'), 1000)
    >>> parse_override("particle.structure=3iyf.pdb")
    (('particle', 'structure'), '3iyf.pdb')
    """
    name, equals, value = override.partition("=")
    keys = tuple(part.strip() for part in name.split("."))
    if not equals or len(keys) < 2 or not all(keys):
        raise SettingsError(
            f"--set {override}: expected section.key=value.", "For example: --set simulate.frames=1000"
        )
    try:
        return keys, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return keys, value.strip()


def _parse_for(sections: type[Section], override: str) -> tuple[tuple[str, ...], Any]:
    """Keys and value of an override; a text setting stays text, even if TOML reads 04:00:00 or 12345."""
    keys, value = parse_override(override)
    if not isinstance(value, str) and _kind_of(sections, keys) is str:
        value = override.partition("=")[2].strip()
    return keys, value


def _kind_of(sections: type[Section], keys: Sequence[str]) -> Any:
    """The type of a setting; None if there is no setting of this name."""
    kind: Any = sections
    for key in keys:
        fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, Section) else {}
        kind = fields[key].annotation if key in fields else None
    return kind


def _insert(tree: dict[str, Any], keys: tuple[str, ...], value: Any, override: str) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise SettingsError(
                f"--set {override}: '{key}' is not a section.",
                "Write SECTION.KEY=VALUE; orienteer settings prints all settings.",
            )
    tree[keys[-1]] = value


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each key and section header of a TOML text, counted from 1.

    >>> key_lines("[emc]\\niterations = 3")
    {('emc',): 1, ('emc', 'iterations'): 2}
    """
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([^\[\]]+?)\s*\]+\s*(#.*)?$", line):
            section = _split_key(header[1])
            lines.setdefault(section, number)
        elif entry := re.match(r"\s*([\w.\-\"' ]+?)\s*=", line):
            lines.setdefault(section + _split_key(entry[1]), number)
    return lines


def _split_key(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in key.split("."))
