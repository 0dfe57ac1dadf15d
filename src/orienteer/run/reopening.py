"""The settings and data of a run that is opened again; an error if they are not those it was begun with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from pydantic import ValidationError

from orienteer.errors import FileError, OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.input import (
    describe_input,
    describe_wavelength,
    file_differences,
    hash_named_files,
    input_differences,
)
from orienteer.run.method import MethodKind
from orienteer.settings.section import Section
from orienteer.source.base import Source


def read_section(kind: MethodKind, directory: RunDirectory, described: dict[str, Any]) -> Section:
    """The settings of the method, with which the run was begun."""
    stored = directory.read_settings(described, kind.settings).get(kind.name, {})
    try:
        return kind.settings.model_validate(stored)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join([kind.name, *(str(part) for part in problem["loc"])])
        raise FileError(
            directory.settings,
            f"has a setting that this Orienteer does not take: {where}: {problem['msg']}.",
            "Go on with the version of Orienteer that began the run, or begin anew with --restart.",
        ) from None


def refuse_other_files(directory: RunDirectory, described: dict[str, Any], section: Section) -> None:
    """Refuse files that are named in settings and differ from those that the run was begun with."""
    differences = file_differences(described.get("files", {}), hash_named_files(section))
    if differences:
        raise FileError(
            directory.path,
            f"the run there was begun with something else. Different now: {'; '.join(differences)}.",
            "Put it back as it was, or begin another run.",
        )


def refuse_other_source(directory: RunDirectory, described: dict[str, Any], source: Source) -> None:
    """Refuse a source that differs from the one that the run was begun with."""
    differences = input_differences(described["input"], describe_input(source))
    if differences:
        raise FileError(
            directory.path,
            f"the run there was begun with other data. Different now: {'; '.join(differences)}.",
            "Give the data that it was begun with (source=).",
        )


def reopen_source(directory: RunDirectory, described: dict[str, Any]) -> Source:
    """Open the data of a run at their old path, with its detector and wavelength, without excluded events."""
    from orienteer.source.left_out import without_events
    from orienteer.source.opening import open as open_source

    stored = described["input"]
    if stored["path"] is None:
        raise OrienteerError(
            f"{directory.path}: the data of this run came from no file.",
            "Give them: Run.open(path, source=...).",
        )
    wavelength_A = stored["wavelength_A"]
    source = open_source(stored["path"])
    if isinstance(wavelength_A, float) and describe_wavelength(source) != wavelength_A:
        with warnings.catch_warnings():  # the same warnings were shown when the run was begun
            warnings.simplefilter("ignore")
            source = open_source(source, wavelength_A=wavelength_A)
    detector = directory.read_detector()
    source = source if detector is None else source.with_detector(detector)
    source = without_events(source, np.array(stored.get("left_out", []), dtype=np.uint64))
    refuse_other_source(directory, described, source)
    return source
