"""Messages that nobody can understand are counted and skipped; the events between them arrive."""

import threading
from pathlib import Path

import numpy as np
import pytest

from orienteer.live.folder import LiveFolder
from orienteer.live.journal import read_shots
from orienteer.live.looking import looking_of
from orienteer.live.summary import live_summary
from orienteer.live.worker import Worker
from orienteer.run.settings import Settings
from orienteer.source.patterns import Patterns

N_EVENTS, N_MALFORMED = 400, 10_000


def test_ten_thousand_malformed_messages_are_counted_and_no_event_is_lost(tmp_path: Path) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    from orienteer.stream.push import Publisher, PushSource
    from orienteer.stream.sockets import send

    draw = np.random.default_rng(0)
    publisher = Publisher("tcp://127.0.0.1:0", (4, 5))

    def publish() -> None:
        for first in range(0, N_EVENTS, 10):
            for _ in range(N_MALFORMED * 10 // N_EVENTS):
                parts = [draw.bytes(int(draw.integers(0, 60))) for _ in range(draw.integers(1, 4))]
                while not send(publisher._socket, parts):
                    pass
            event_id = np.arange(first, first + 10, dtype=np.uint64)
            batch = Patterns(draw.poisson(1, (10, 20)).astype(np.uint16), event_id)
            while not publisher.send(batch):
                pass
        while not publisher.finish():
            pass

    sender = threading.Thread(target=publish, daemon=True)
    sender.start()
    source = PushSource(publisher.address, connect_s=60)
    folder, settings = LiveFolder(tmp_path / "run"), Settings()
    folder.make()
    folder.begin({"sources": {"pushed": "pushed"}}, settings)
    folder.meet_source(source.frame_shape, None)
    worker = Worker(folder, source, looking_of(settings, source.n_pixels, None), settings.live)
    assert worker.run(lambda: True)
    sender.join(60)
    source.close()
    publisher.close()
    counters = live_summary(folder.path)["counters"]
    assert counters["malformed"] == N_MALFORMED
    assert counters["received"] == counters["processed"] == N_EVENTS
    np.testing.assert_array_equal(read_shots(folder.path, ["event_id"])["event_id"], np.arange(N_EVENTS))
