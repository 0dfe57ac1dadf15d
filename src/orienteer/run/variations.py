"""Variations of a run: one settings file with other values, such as several seeds, each in its own folder."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orienteer.errors import FileError, SettingsError
from orienteer.settings.loading import load_settings, parse_override

if TYPE_CHECKING:
    from orienteer.run.settings import Settings


@dataclass(frozen=True)
class Variation:
    """A run that a settings file and overrides define.

    overrides : "section.key=value" texts; folder : of the run.
    """

    file: Path
    overrides: tuple[str, ...]
    settings: Settings
    folder: Path


def parse_over(text: str) -> list[str]:
    """The overrides that one ``--over`` stands for.

    >>> parse_over("run.seed=1,2,3")
    ['run.seed=1', 'run.seed=2', 'run.seed=3']
    """
    key, equals, values = text.partition("=")
    each = [value.strip() for value in values.split(",")]
    example = "For example: --over run.seed=1,2,3"
    if not equals or not all(each) or not all(part.strip() for part in key.split(".")) or "." not in key:
        raise SettingsError(f"--over {text}: expected section.key=value,value,...", example)
    if len(each) == 1:
        raise SettingsError(
            f"--over {text}: one value makes no array of runs.", f"Use --set {text}, or give more values."
        )
    overrides = [f"{key.strip()}={value}" for value in each]
    meant = [json.dumps(parse_override(override)[1], default=str) for override in overrides]
    if twice := [value for value, own in zip(each, meant, strict=True) if meant.count(own) > 1]:
        raise SettingsError(f"--over {text}: {twice[-1]} is given twice.", "Give every value once.")
    return overrides


def variations(
    files: Sequence[Path], overrides: Sequence[str] = (), over: Sequence[str] = ()
) -> list[Variation]:
    """Every run that the files define, checked; with ``over``, each file with every combination of values."""
    from orienteer.run.settings import Settings

    found: dict[Path, Variation] = {}
    for file in files:
        for chosen in itertools.product(*(parse_over(text) for text in over)):
            given = [*overrides, *chosen]
            settings = _loaded(Settings, file, given, chosen)
            folder = settings.run.folder(file)
            if chosen:
                folder = folder.with_name("-".join([folder.name, *(_label(text) for text in chosen)]))
                given.append(f"run.out={_text(str(folder))}")
            data = settings.run.patterns(file)
            if not data.exists():
                hint = "Relative paths count from the folder of the command."
                raise FileError(data, f"{file} names these data, but they do not exist.", hint)
            if folder in found:
                raise SettingsError(
                    f"the runs of {file} and {found[folder].file} would have the same folder, {folder}.",
                    "Give each a folder of its own:  out  under [run].",
                )
            found[folder] = Variation(file, tuple(given), settings, folder)
    return list(found.values())


def _loaded(
    kind: type[Settings], file: Path, given: Sequence[str], chosen: Sequence[str]
) -> Settings:  # fmt: skip
    """The settings of a file with overrides; an error names the option that gave the value."""
    try:
        return load_settings(kind, file, given)
    except SettingsError as error:
        own = next((text for text in chosen if error.message.startswith(f"--set {text}:")), None)
        if own is None:
            raise
        raise SettingsError(f"--over {error.message.removeprefix('--set ')}", error.hint) from None


def _label(override: str) -> str:
    """A value as a part of the name of a folder.

    >>> _label("run.seed=3"), _label("emc.background_file=a/b c.h5")
    ('seed-3', 'background_file-b-c.h5')
    """
    keys, value = parse_override(override)
    return re.sub(r"[^\w.+-]+", "-", f"{keys[-1]}-{Path(str(value)).name}")


def _text(text: str) -> str:
    """A text as the value of an override; quoted only if it would otherwise be read as something else."""
    _, value = parse_override(f"run.out={text}")
    return text if value == text else json.dumps(text)
