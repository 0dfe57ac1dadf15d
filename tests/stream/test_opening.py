"""Addresses say what a stream is."""

import pytest

from orienteer.errors import OrienteerError
from orienteer.stream.base import EventSource
from orienteer.stream.opening import open_stream


def test_sources_are_event_sources(serve, made_up) -> None:
    source = open_stream(serve(made_up()).address)
    assert isinstance(source, EventSource)
    source.close()


def test_what_is_no_stream_is_an_error_that_names_those_that_are(tmp_path) -> None:
    with pytest.raises(OrienteerError, match="no stream, file or folder"):
        open_stream(tmp_path / "nowhere")


def test_an_option_that_a_stream_does_not_take_is_an_error_in_words(tmp_path) -> None:
    with pytest.raises(OrienteerError, match="unexpected keyword argument 'speed'"):
        open_stream(tmp_path, speed=3)
