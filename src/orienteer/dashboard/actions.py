"""What the page can change: tags and notes of runs, tags and exclusion of frames; and stop and start runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from orienteer.dashboard import marks
from orienteer.dashboard.answers import PlainAnswer
from orienteer.dashboard.control import Control
from orienteer.dashboard.index import Entry
from orienteer.dashboard.runs import RunId
from orienteer.dashboard.state import State, as_texts_by_tag
from orienteer.errors import OrienteerError
from orienteer.source.left_out import is_event_id

Tag = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")
]


def _event_id(text: str) -> int:
    """The number of an event, which is sent as text, as numbers of JavaScript are exact only to 2^53."""
    if not is_event_id(text):
        raise ValueError("is not an event id")
    return int(text)


Event = Annotated[int, BeforeValidator(lambda text: _event_id(text) if isinstance(text, str) else "")]


class Nothing(BaseModel):
    """An empty body."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Tags(Nothing):
    """Tags to add and to remove."""

    add: list[Tag] = Field(default=[], max_length=50)
    remove: list[Tag] = Field(default=[], max_length=50)


class Note(Nothing):
    """A note."""

    # Without the NUL character, which some databases take for the end of a text.
    text: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000, pattern=r"^[^\x00]+$"),
    ]


class FrameTags(Tags):
    """Tags to add to events and to remove from them."""

    event_ids: list[Event] = Field(min_length=1, max_length=1000)


class Events(Nothing):
    """Events to exclude, and to include again (``remove``)."""

    event_ids: list[Event] = Field(default=[], max_length=5000)
    remove: list[Event] = Field(default=[], max_length=5000)


def action_routes(state: State) -> APIRouter:
    """The routes that change something; the gate has already checked that the request is allowed."""
    routes = APIRouter(prefix="/api/runs/{run_id}")
    control = Control(state.roots, state.campaign)

    def campaign_name(entry: Entry) -> str:
        return state.book.name_of(str(entry.path), entry.row["kind"])

    @routes.post("/tags")
    def tags(run_id: RunId, body: Tags) -> Response:
        entry = state.index.find(run_id)
        if state.book.is_there:
            name = campaign_name(entry)
            found = state.book.ask(lambda campaign: campaign.tag(name, body.add, body.remove))
            state.book.forget()
        else:
            found = marks.tag(state.roots, entry.path, body.add, body.remove)
        state.index.look_again(run_id)
        return PlainAnswer({"tags": found})

    @routes.post("/note")
    def note(run_id: RunId, body: Note) -> Response:
        entry = state.index.find(run_id)
        if state.book.is_there:
            name = campaign_name(entry)
            state.book.ask(lambda campaign: campaign.note(name, body.text, author="dashboard"))
            state.book.forget()
        else:
            marks.note(state.roots, entry.path, body.text)
        state.index.look_again(run_id)
        return PlainAnswer({"notes": state.notes(entry)})

    @routes.post("/exclude")
    def exclude(run_id: RunId, body: Events) -> Response:
        entry = state.index.find(run_id)
        found = marks.exclude(state.roots, entry.path, body.event_ids, body.remove)
        state.index.look_again(run_id)
        return PlainAnswer({"excluded": [str(number) for number in found]})

    @routes.post("/frame-tags")
    def frame_tags(run_id: RunId, body: FrameTags) -> Response:
        entry = state.index.find(run_id)
        found = marks.tag_events(state.roots, entry.path, body.event_ids, body.add, body.remove)
        # The file in the folder of the run is authoritative.  If this copy to the campaign fails, the next
        # feeder of the campaign copies it.
        with suppress(OrienteerError):
            name = campaign_name(entry)
            state.book.ask(lambda campaign: campaign.put_frame_tags(name, found))
            state.book.forget()
        state.index.look_again(run_id)
        return PlainAnswer({"frame_tags": as_texts_by_tag(found)})

    @routes.post("/stop")
    def stop(run_id: RunId, body: Nothing) -> Response:
        words = control.stop(state.index.find(run_id))
        state.index.look_again(run_id)
        return PlainAnswer({"words": words})

    @routes.post("/start")
    def start(run_id: RunId, body: Nothing) -> Response:
        words = control.start(state.index.find(run_id))
        state.index.look_again(run_id)
        return PlainAnswer({"words": words})

    return routes
