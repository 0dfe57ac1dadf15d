"""A worker that stalls once in the middle of a stream; prints how its resident memory went, as JSON.

Run as ``python stalled_worker_script.py FOLDER ADDRESS KIND SECONDS``; the kind is "ask" or "push".
"""

import json
import sys
import threading
import time
from pathlib import Path

from orienteer.calibration.calibration import Calibration
from orienteer.hits.finding import HitFinder
from orienteer.live.allocator import take_large_blocks_one_by_one
from orienteer.live.folder import LiveFolder
from orienteer.live.looking import Columns, Looking
from orienteer.live.worker import Worker
from orienteer.run.settings import Settings
from orienteer.source.patterns import Patterns
from orienteer.stream.pull import PullSource
from orienteer.stream.push import PushSource

STALLS_AT = 2000


def resident_MiB() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


class Stalling(Looking):
    """Looks as usual, but stops for some seconds at one event, while the threads of the stream go on."""

    n_seen, seconds = 0, 0.0
    is_stalled = threading.Event()

    def look(self, raw: Patterns) -> tuple[Columns, Patterns]:
        if self.n_seen < STALLS_AT <= self.n_seen + len(raw):
            self.is_stalled.set()
            time.sleep(self.seconds)
        self.n_seen += len(raw)
        return super().look(raw)


def main(path: Path, address: str, kind: str, seconds: float) -> None:
    take_large_blocks_one_by_one()
    folder, settings = LiveFolder(path), Settings()
    folder.make()
    folder.begin({"sources": {"stream": address}}, settings)
    source = PullSource(address, most_events=64) if kind == "ask" else PushSource(address)
    folder.meet_source(source.frame_shape, None)
    looking = Stalling(
        Calibration(settings.calibration, source.n_pixels), HitFinder(settings.hits, source.n_pixels)
    )
    looking.seconds = seconds
    worker = Worker(folder, source, looking, settings.live)
    since_stalled: list[float] = []

    def watch() -> None:
        looking.is_stalled.wait()
        while True:
            since_stalled.append(resident_MiB())
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()
    has_all = worker.run(lambda: True)
    source.close()
    print(json.dumps({"has_all": has_all, "most_MiB": max(since_stalled), "last_MiB": resident_MiB()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
