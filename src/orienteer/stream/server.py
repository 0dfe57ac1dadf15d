"""StreamServer: answers requests for events with the batch that begins at the requested position.

It remembers nothing about its clients, so that it can be killed and started again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.stream.batch_message import MOST_EVENTS, arrays_of, small_arrays_of
from orienteer.stream.message import Malformed, Message, decode, encode
from orienteer.stream.replay import Replay
from orienteer.stream.sockets import close_server, endpoint, is_ready, open_socket, receive, send

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

_LARGEST_REQUEST_BYTES = 1 << 20
_LAST_FRAME = 1 << 62
# How soon a client should ask again if there was nothing new.
_PAUSE_S = 0.05


class StreamServer:
    """Serves a replay at an address such as ``tcp://127.0.0.1:5555``; port 0 or ``*`` takes a free one.

    n_malformed : requests that could not be understood and were skipped.
    n_sent : events sent, including those sent again.
    """

    def __init__(self, replay: Replay, address: str, name: str | None = None) -> None:
        self.replay = replay
        path = replay.source.path
        self.name = name or ("array" if path is None else path.name)
        self.n_malformed = self.n_sent = 0
        self.has_told_end = False
        self._socket = open_socket("ROUTER", address, is_server=True, most_bytes=_LARGEST_REQUEST_BYTES)
        self.address = endpoint(self._socket)
        self._description = self._describe()

    def serve(self, seconds: float = 0.1) -> None:
        """Answer one request, waiting at most this long for it."""
        if not is_ready(self._socket, seconds):
            return
        parts = receive(self._socket)
        if parts is None or len(parts) < 2:
            self.n_malformed += 1
            return
        # A REQ socket puts an empty part before its request, and expects it before the answer.
        n_route = 2 if len(parts) == 3 and len(parts[1]) == 0 else 1
        route = [bytes(part) for part in parts[:n_route]]
        try:
            answer = self._answer(decode(parts[n_route:]))
        except Malformed:
            self.n_malformed += 1
            return
        except OrienteerError as error:
            answer = encode("refused", {"reason": error.message})
        send(self._socket, [*route, *answer])

    def close(self, linger_s: float = 1.0) -> None:
        """Stop answering, once the last answer has gone out or the time is over."""
        close_server(self._socket, linger_s)
        self.replay.close()

    def _answer(self, request: Message) -> list[bytes | memoryview]:
        if request.kind == "describe":
            return self._description
        if request.kind == "events":
            return self._events(request)
        if request.kind == "frames":
            return self._frames(request)
        raise Malformed("a request is of an unknown kind.")

    def _events(self, request: Message) -> list[bytes | memoryview]:
        first, most = self._first(request), request.number("most", MOST_EVENTS)
        with_frames = request.fields.get("frames", True)
        batch = self.replay.batch(first, most)
        fields = {
            "from": request.fields["from"],
            "position": self._position(batch.last),
            "is_end": batch.is_end,
            "again_s": _PAUSE_S,
        }
        if batch.first == batch.last:
            self.has_told_end |= batch.is_end
            return encode("events", fields, {"event_id": np.empty(0, np.uint64)})
        if with_frames:
            arrays = arrays_of(self.replay.patterns(batch))
        else:
            arrays = small_arrays_of(*self.replay.small_data(batch))
        self.n_sent += batch.last - batch.first
        return encode("events", fields, arrays)

    def _frames(self, request: Message) -> list[bytes | memoryview]:
        rows = request.arrays.get("rows")
        if rows is None or rows.dtype != np.int64 or rows.ndim != 1 or len(rows) > self.replay.most_events:
            raise Malformed("a request for frames names no rows.")
        if len(rows) and (rows.min() < 0 or rows.max() >= MOST_EVENTS):
            raise Malformed("a request for frames names rows outside of a batch.")
        patterns = self.replay.chosen(self._first(request), rows)
        return encode("frames", {"from": request.fields["from"]}, arrays_of(patterns))

    def _first(self, request: Message) -> int:
        position = request.table("from")
        frame = position.get("frame")
        if not isinstance(frame, int) or isinstance(frame, bool) or not 0 <= frame < _LAST_FRAME:
            raise Malformed("a position names no frame.")
        if position.get("of") != self.name:
            raise OrienteerError(
                f"the stream gives '{self.name}', not '{position.get('of')}'.",
                "Replay the data that the live run was begun with, or begin another live run.",
            )
        return frame

    def _position(self, frame: int) -> dict[str, Any]:
        return {"of": self.name, "frame": frame}

    def _describe(self) -> list[bytes | memoryview]:
        source = self.replay.source
        fields: Mapping[str, Any] = {
            "name": self.name,
            "frame_shape": list(source.frame_shape),
            "start": self._position(0),
            "most": self.replay.most_events,
            "polarisation": source.polarisation,
        }
        arrays = {} if source.detector is None else {"detector": _detector_bytes(source.detector)}
        return encode("description", fields, arrays)


def _detector_bytes(detector: Detector) -> Any:
    """A detector as the bytes of an HDF5 file."""
    from orienteer.detector.writing import write_detector_file

    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector.h5"
        write_detector_file(path, detector)
        return np.frombuffer(path.read_bytes(), np.uint8)
