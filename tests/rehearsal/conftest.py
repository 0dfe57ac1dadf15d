"""These tests hold for CuPy on a card as well, except those that ask for ``only_rehearsed``."""

import pytest


@pytest.fixture
def only_rehearsed(request: pytest.FixtureRequest) -> None:
    """Skips on a card: there, what is wrong may pass unseen, hang or end the process."""
    if not request.config.getoption("--rehearse"):
        pytest.skip("asks what a rehearsal finds; run with --rehearse")
