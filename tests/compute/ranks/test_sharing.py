"""Cores and cards of a machine among its ranks."""

import os
import sys
from typing import Any

import pytest

from orienteer.compute.ranks import sharing
from orienteer.compute.ranks.comm import Serial, share_of


class Beside(Serial):
    """One of several ranks on one machine, all of which see the same."""

    def __init__(self, number: int, size: int) -> None:
        super().__init__()
        self.number, self.size = number, size

    def gather(self, value: Any) -> list[Any]:
        return [value] * self.size

    def share(self, n: int) -> slice:
        return share_of(n, self.number, self.size)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What ranks are told to use."""
    told: list[int] = []
    monkeypatch.setattr(sharing, "use_threads", told.append)
    monkeypatch.setattr(sharing, "_cores", lambda: {0, 1, 2, 3, 4, 5})
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    return told


def test_every_rank_has_a_card_and_its_part_of_the_cores(
    threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = []
    for number in range(3):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
        assert sharing.share_machine(Beside(number, 3)) == 2
        cards.append(os.environ["CUDA_VISIBLE_DEVICES"])
    assert cards == ["4", "5", "4"]
    assert threads == [2, 2, 2]


def test_a_card_that_a_launcher_has_given_stays(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert sharing.share_machine(Beside(0, 1)) == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


def test_without_cards_nothing_is_said_of_them(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert sharing.share_machine(Beside(1, 2)) == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert threads == [3]
