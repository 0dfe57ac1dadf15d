"""What the user gives a live run: sources, filter, geometry; each is checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector
    from orienteer.run.settings import Settings
    from orienteer.stream.base import EventSource
    from orienteer.stream.filtering import Filter


def check_given(facts: Mapping[str, Any], settings: Settings) -> None:
    """Refuse sources, options, a filter or a geometry that cannot work; receives nothing.

    facts : ``sources`` (addresses by name), their ``options`` and ``filter``.
    """
    from orienteer.stream.opening import check_stream

    for address in facts["sources"].values():
        check_stream(address, facts.get("options") or {})
    load_filter(str(facts.get("filter") or ""))
    open_detector(settings)


def open_sources(described: Mapping[str, Any], has_filter: bool) -> EventSource:
    """Open one stream, or several whose events are matched by id."""
    from orienteer.stream.building import EventBuilder
    from orienteer.stream.opening import open_stream

    opened: dict[str, EventSource] = {}
    try:
        for name, address in described["sources"].items():
            options = dict(described.get("options") or {})
            if has_filter and address.startswith(("tcp://", "ipc://")):
                options.setdefault("small_data_first", True)
            opened[name] = open_stream(address, **options)
    except BaseException:
        for source in opened.values():
            with suppress(Exception):
                source.close()
        raise
    return next(iter(opened.values())) if len(opened) == 1 else EventBuilder(opened)


def open_detector(settings: Settings) -> Detector | None:
    """The detector that the user has given; None if there is none."""
    if not settings.run.geometry:
        return None
    from orienteer.detector.opening import open_geometry

    return open_geometry(
        Path(settings.run.geometry),
        wavelength_A=settings.run.wavelength_A or None,
        distance_m=settings.run.distance_m or None,
    ).detector


def load_filter(text: str) -> Filter | None:
    """The user's filter; None if there is none."""
    if not text:
        return None
    from orienteer.stream import filtering

    return filtering.load_filter(text)
