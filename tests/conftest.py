"""What all tests share: options, and skips that say why."""

import signal
from collections.abc import Iterator

import pytest

from orienteer.compute.arrays import import_cupy


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests that take more than a minute")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    no_gpu = pytest.mark.skip(reason="needs a CUDA device and CuPy, none here")
    not_asked = pytest.mark.skip(reason="takes more than a minute; run with --slow")
    for item in items:
        if "gpu" in item.keywords and import_cupy() is None:
            item.add_marker(no_gpu)
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(not_asked)


HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """The command line takes signals for good, as a program may; other tests must find them as they were."""
    yield
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)
