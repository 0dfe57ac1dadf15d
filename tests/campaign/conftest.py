"""Campaigns on SQLite and on a real PostgreSQL server, so that every test holds for both."""

import importlib.util
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'orienteer[campaign]'")
pytest.importorskip("alembic", reason="needs alembic: pip install 'orienteer[campaign]'")

from orienteer.campaign.campaign import Campaign


def _load(name: str) -> ModuleType:
    """A module beside this one; test files are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    postgres = _load("postgres_server")
    if reason := postgres.why_not():
        pytest.skip(reason)
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'orienteer[postgres]'")
    with postgres.running_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a campaign can be made that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "campaign.db")
    made: str = request.getfixturevalue("server").make_database(f"c{uuid.uuid4().hex}")
    return made


@pytest.fixture
def campaign(address: str) -> Iterator[Campaign]:
    with Campaign.open(address, create=True) as opened:
        yield opened


@pytest.fixture
def make_shots() -> Callable[..., dict[str, Any]]:
    """Columns of made-up shots, the same for the same numbers."""

    def make(n: int, first: int = 0) -> dict[str, Any]:
        number = np.arange(first, first + n)
        random = np.random.default_rng(first)
        size = random.normal(300, 20, n)
        size[number % 10 != 0] = np.nan
        return {
            "event_id": number.astype(np.uint64) + np.uint64(2**63),
            "time_s": 1.7e9 + number / 120,
            "is_hit": number % 10 == 0,
            "photons": random.poisson(100, n),
            "hit_score": random.normal(size=n),
            "size_A": size,
            "kind": (number % 4).astype(np.uint8),
            "sample_voltage_V": number * 0.5,
            'odd \\ "name"\t': np.sqrt(number),
            "spectrum": np.zeros((n, 3)),
        }

    return make
