"""Addresses say what a stream is."""

import numpy as np
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


def test_several_streams_are_joined_by_an_address(serve, made_up, all_of) -> None:
    sent = made_up()
    source = open_stream(f"join:front={serve(sent).address};back={serve(sent).address}", window=64)
    got = all_of(source)
    source.close()
    assert source.frame_shape == (2, 16)
    assert np.array_equal(got.event_id, sent.event_id)
    assert np.array_equal(got.frames, np.concatenate([sent.frames, sent.frames], axis=1))
    for text in ("join:", "join:a=tcp://x", "join:a=tcp://x;a=tcp://y", "join:a;b"):
        with pytest.raises(OrienteerError, match="several streams"):
            open_stream(text)
