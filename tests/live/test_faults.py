"""Source, worker, feeder and supervisor are killed in the middle of a stream, and nothing is lost."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "live_faults.py"


def load_bench() -> Any:
    spec = importlib.util.spec_from_file_location("live_faults", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(600)
def test_no_event_is_lost_or_counted_twice_whatever_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'orienteer[campaign]'")
    faults = load_bench().LiveFaults(tmp_path, 3000, 200.0)
    try:
        found = faults.suffer(["source", "worker", "supervisor", "database"], 4, random.Random(3), print)
    finally:
        faults.close()
    assert found["each_event_is_once_in_the_journal"]
    assert found["each_event_is_once_in_the_database"]
    assert found["each_hit_has_its_photons"]
    assert found["counters_add_up"], found["counted"]
    assert found["status"] == 0
    assert found["hits"] > 100
    assert sum(found["kills"].values()) >= 3
