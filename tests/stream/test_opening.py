"""Addresses say what a stream is."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError, SettingsError
from orienteer.stream.base import EventSource
from orienteer.stream.growing import GrowingSource
from orienteer.stream.opening import check_stream, open_stream
from orienteer.stream.options import check_options


def test_sources_are_event_sources(serve, made_up) -> None:
    source = open_stream(serve(made_up()).address)
    assert isinstance(source, EventSource)
    source.close()


def test_what_is_no_stream_is_an_error_that_names_those_that_are(tmp_path) -> None:
    with pytest.raises(OrienteerError, match="no stream, file or folder"):
        open_stream(tmp_path / "nowhere")


def test_an_option_that_a_stream_does_not_take_is_an_error_in_words(tmp_path) -> None:
    with pytest.raises(SettingsError, match="there is no option 'speed'") as refused:
        open_stream(tmp_path, speed=3)
    assert "most_events" in refused.value.hint


def test_what_an_address_tells_is_no_option_of_its_stream() -> None:
    with pytest.raises(SettingsError, match="there is no option 'kind'"):
        open_stream("push+tcp://127.0.0.1:5555", kind="SUB")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"most_events": "many"}, "option most_events is 'many', but should be a whole number"),
        ({"most_events": True}, "should be a whole number"),
        ({"follow": 1}, "option follow is 1, but should be true or false"),
        ({"quiet_s": "x"}, "should be a number"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_an_error_in_words(tmp_path, options, told) -> None:
    with pytest.raises(SettingsError, match=told):
        open_stream(tmp_path, **options)


def test_values_that_an_option_can_have_are_taken() -> None:
    check_options("x", GrowingSource, {"quiet_s": None, "most_events": 3, "geometry": object()})
    check_options("x", GrowingSource, {"quiet_s": 2})


@pytest.mark.parametrize(
    "address",
    ["tcp://host", "tcp://host:port", "tcp://:5555", "tcp://host:99999", "karabo://host", "push+tcp://host",
     "ipc://", "nowhere.h5", "extra-data:/nowhere", "join:a=tcp://x:1;b=tcp://y"],
)  # fmt: skip
def test_addresses_that_lead_nowhere_are_refused_without_a_connection(address) -> None:
    with pytest.raises(OrienteerError):
        check_stream(address, {})


@pytest.mark.parametrize(
    "address",
    ["tcp://host:5555", "tcp://[::1]:5555", "karabo://host:4545", "push+tcp://host:1", "pub+tcp://host:1",
     "ipc:///tmp/x", "join:a=tcp://x:1;b=tcp://y:2"],
)  # fmt: skip
def test_addresses_at_which_somebody_may_answer_later_are_not(address) -> None:
    check_stream(address, {})


def test_a_file_that_holds_no_patterns_is_refused(tmp_path) -> None:
    (tmp_path / "thesis.h5").write_text("important")
    with pytest.raises(OrienteerError, match=r"thesis\.h5"):
        check_stream(tmp_path / "thesis.h5", {})
    check_stream(tmp_path, {})


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
