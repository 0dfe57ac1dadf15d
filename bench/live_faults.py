"""Kill -9 the parts of a live run at random times: no event may be lost or counted twice, and all go on.

    python bench/live_faults.py [--kills N] [--events N] [--seconds S] [--postgres] [--map] [--keep]

Made-up shots are replayed over ZeroMQ into ``orienteer live`` with a campaign in SQLite or, with
``--postgres``, in a server of its own.  The source, the worker, the supervising command, the feeder of the
database (and its server), the dashboard and, with ``--map``, the map are killed in turn at random times and,
where nobody else does, started again.  Asked: every event exactly once in the journal and in the database,
and counters that add up.
"""

import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

PIXELS = 16
TESTS = Path(__file__).parent.parent / "tests"


def main() -> None:
    from machine import describe_machine, report

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--seconds", type=float, default=400, help="how long the stream lasts")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--map", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--keep", action="store_true", help="write bench/results/live_faults_DATABASE.json")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="live-faults-"))
    kinds = ["source", "worker", "supervisor", "database", "dashboard", *(["map"] if given.map else [])]
    with ExitStack() as stack:
        server = stack.enter_context(_postgres().running_server()) if given.postgres else None
        faults = LiveFaults(folder, given.events, given.events / given.seconds, server, given.map)
        stack.callback(faults.close)
        found = faults.suffer(kinds, given.kills, random.Random(given.seed), print_line)
    result = {
        "machine": describe_machine(),
        "database": "PostgreSQL" if given.postgres else "SQLite",
        "asked": "every event once in journal and database; received = filtered + dropped + processed",
        **found,
    }
    report(f"live_faults_{result['database'].lower()}", result, given.keep)
    if given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if found["is_good"] else 1)


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class LiveFaults:
    """A live run of made-up shots whose parts can be killed.

    server : a PostgreSQL server to be killed as well; None: the campaign is an SQLite file.
    """

    def __init__(
        self, folder: Path, n_events: int, rate_hz: float, server: Any = None, has_map: bool = False
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.n_events, self.rate_hz, self.server = folder, n_events, rate_hz, server
        self.run = folder / "run"
        self.campaign = server.make_database("live_faults") if server else str(folder / "campaign.db")
        self._ports = [_free_port(), _free_port()]
        self._has_map = has_map
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        if has_map:
            simulate(folder / "frames.h5", n_events)
        else:
            make_up(folder / "frames.h5", n_events)

    def suffer(
        self, kinds: list[str], n_kills: int, draw: random.Random, say: Callable[[str], None]
    ) -> dict[str, Any]:
        """Kill parts in random order, each when events have come since the last one; what is left."""
        self._start("source", *self._replay)
        if "dashboard" in kinds:
            self._start("dashboard", *self._serve)
        began = time.monotonic()
        self._start("supervisor", *self._live)
        self._wait(lambda: self._pid_of("worker") is not None, 120)
        kills: list[str] = []
        order = [kinds[k % len(kinds)] for k in range(n_kills)]
        draw.shuffle(order)
        for number, kind in enumerate(order):
            before = self._received()
            self._wait(lambda before=before: self._received() > before, 90)
            time.sleep(draw.uniform(0, 1.5))
            if self._received() >= self.n_events:
                break
            kills.append(self._kill(kind, draw))
            say(f"{number + 1}: {kills[-1]}; {self._received()} of {self.n_events} received")
        if self._has_map:  # how the map gets better after the last hit is another question
            self._wait(lambda: self._is_done("worker") and self._is_done("database"), 1200)
            self._processes["supervisor"].terminate()
        status = self._processes["supervisor"].wait(1200)
        checked = self.check()
        checked["dashboard_answers"] = "dashboard" not in kinds or self._wait(self._answers, 60)
        is_good = status == (143 if self._has_map else 0) and all(
            value for name, value in checked.items() if name.startswith(("each", "c", "d"))
        )
        return {
            "is_good": is_good,
            "kills": {kind: kills.count(kind) for kind in kinds},
            "events": self.n_events,
            "seconds": round(time.monotonic() - began, 1),
            "status": status,
            **checked,
        }

    def check(self) -> dict[str, Any]:
        """Whether every event is in journal and database exactly once, and the counters add up."""
        from orienteer.campaign.campaign import Campaign
        from orienteer.live.journal import JournalSource, read_shots
        from orienteer.source.opening import open as open_source

        wanted = np.sort(open_source(self.folder / "frames.h5").event_ids())
        shots = read_shots(self.run)
        counters = json.loads((self.run / "counters.json").read_text())
        with Campaign.open(self.campaign) as campaign:
            fed = campaign.shots(self.run.name, ["event_id"])["event_id"]
        decided = counters["filtered"] + counters["dropped"] + counters["processed"]
        hits = JournalSource(self.run).event_ids()
        return {
            "each_event_is_once_in_the_journal": bool(np.array_equal(np.sort(shots["event_id"]), wanted)),
            "each_event_is_once_in_the_database": bool(np.array_equal(np.sort(fed), wanted)),
            "counters_add_up": counters["received"] == self.n_events == decided,
            "each_hit_has_its_photons": bool(np.array_equal(hits, shots["event_id"][shots["is_hit"]])),
            "hits": len(hits),
            "map": self._map(),
            "counted": {name: counters[name] for name in ("received", "filtered", "dropped", "processed")},
        }

    def _map(self) -> dict[str, int] | None:
        """How often the map has gone on, and with how many hits it has ended; None where there is none."""
        from orienteer.run.events import read_events

        events = read_events(self.run / "map" / "events.jsonl")
        steps = [event for event in events if event["event"] == "step"]
        resumed = sum(event["event"] == "resumed" for event in events)
        return {"resumed": resumed, "rounds": len(steps), "hits": steps[-1]["n_hits"]} if steps else None

    def close(self) -> None:
        """End everything that is still there."""
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        for role in ("worker", "map", "database"):
            if (pid := self._pid_of(role)) is not None:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    @property
    def _address(self) -> str:
        return f"tcp://127.0.0.1:{self._ports[0]}"

    @property
    def _replay(self) -> list[str]:
        return [
            "replay",
            str(self.folder / "frames.h5"),
            "--to",
            self._address,
            "--rate",
            f"{self.rate_hz:g}",
        ]

    @property
    def _live(self) -> list[str]:
        words = ["live", "--source", self._address, "--out", str(self.run), "--campaign", self.campaign]
        return [*words, "--json", "--commit-every-s", "0.3", "--map" if self._has_map else "--no-map"]

    @property
    def _serve(self) -> list[str]:
        return [
            "serve",
            str(self.folder),
            "--port",
            str(self._ports[1]),
            "--log",
            str(self.folder / "web.log"),
        ]

    def _start(self, kind: str, *words: str) -> None:
        with (self.folder / f"{kind}.log").open("ab") as log:
            self._processes[kind] = subprocess.Popen(
                [sys.executable, "-m", "orienteer", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _kill(self, kind: str, draw: random.Random) -> str:
        """Kill a part, and start it again where nobody else does."""
        if kind == "database" and self.server is not None and draw.random() < 0.5:
            self.server.stop()  # at once, as a power cut would
            time.sleep(draw.uniform(0, 1))
            self.server.start()
            return kind
        if kind in ("worker", "map", "database"):
            pid = self._wait(lambda: self._pid_of(kind), 60)
            if pid:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return kind
        process = self._processes[kind]
        process.kill()
        process.wait()
        time.sleep(draw.uniform(0, 1))
        self._start(kind, *{"source": self._replay, "dashboard": self._serve, "supervisor": self._live}[kind])
        return kind

    def _pid_of(self, role: str) -> int | None:
        """The process of a role that lives now."""
        from orienteer.run.events import read_events

        events = [e for e in read_events(self.run / "events.jsonl") if e.get("role") == role and e.get("pid")]
        pid = int(events[-1]["pid"]) if events else None
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            return pid if role.encode() in words else None
        return None

    def _is_done(self, role: str) -> bool:
        from orienteer.run.events import read_events

        told = [e["event"] for e in read_events(self.run / "events.jsonl") if e.get("role") == role]
        return told[-1:] == ["done"]

    def _received(self) -> int:
        with suppress(OSError, ValueError, KeyError):
            return int(json.loads((self.run / "counters.json").read_text())["received"])
        return 0

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._ports[1]}/", timeout=5)
        except urllib.error.HTTPError as error:
            return error.code == 401  # nobody has shown a token
        except OSError:
            return False
        return True

    def _wait(self, ready: Callable[[], Any], seconds: float) -> Any:
        until = time.monotonic() + seconds
        while not (found := ready()) and time.monotonic() < until:
            time.sleep(0.1)
        return found


def make_up(path: Path, n_events: int) -> None:
    """Shots of a few photons, of which one in ten has many in its middle."""
    from orienteer.source.opening import writer_for
    from orienteer.source.patterns import Patterns

    draw = np.random.default_rng(0)
    with writer_for(path, frame_shape=(PIXELS, PIXELS)) as writer:
        for first in range(0, n_events, 4096):
            event_id = np.arange(first, min(first + 4096, n_events), dtype=np.uint64)
            frames = draw.poisson(0.1, (len(event_id), PIXELS, PIXELS))
            hits = np.flatnonzero(draw.random(len(event_id)) < 0.1)
            frames[hits, 5:11, 5:11] += draw.poisson(3, (len(hits), 6, 6))
            flat = frames.reshape(len(event_id), -1).astype(np.int32)
            writer.append(Patterns(Patterns(flat).sparse(), event_id, {"pulse_energy_J": 1e-3 * event_id}))


def simulate(path: Path, n_events: int) -> None:
    """Shots of a simulated particle, so that there is something to reconstruct."""
    settings = ["particle.structure=two-domain", "detector.pixels=32", "simulate.empty_fraction=0.9",
                "simulate.photons_per_frame=2000", "simulate.background_photons=100"]  # fmt: skip
    words = [word for each in settings for word in ("--set", each)]
    command = [sys.executable, "-m", "orienteer", "simulate", "--frames", str(n_events), "--out", str(path)]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _postgres() -> Any:
    """The server that the tests use, too."""
    path = TESTS / "campaign" / "postgres_server.py"
    spec = importlib.util.spec_from_file_location("postgres_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
