"""CampaignBook: the dashboard's access to the campaign database, which may be away for a while."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from orienteer.dashboard.refusal import Refused
from orienteer.errors import OrienteerError

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign

T = TypeVar("T")
_PATIENCE_S = 2.0
# Seconds for which read runs are valid, and after which a database that is away is asked again.
_AGE_S, _REST_S = 2.0, 15.0
_MOST_RUNS = 20_000
_AT_ONCE = 1000
_NEVER = -float("inf")


class CampaignBook:
    """A campaign that is opened when it is first needed, with a copy of its runs.

    address : a file or URL; empty: there is no campaign.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._campaign: Campaign | None = None
        self._guard, self._asking = threading.Lock(), threading.Lock()
        self._runs: list[dict[str, Any]] = []
        self._by_folder: dict[str, dict[str, Any]] = {}
        self._at = _NEVER
        self._n_written = 0
        self.trouble = ""

    @property
    def is_there(self) -> bool:
        """Whether there is a campaign at all."""
        return bool(self.address)

    def check(self) -> str:
        """Open the campaign, so that a wrong address is refused at once.

        Returns "" if all is well, or a sentence if a server does not answer, as it may come back later.
        """
        from orienteer.campaign.address import parse_address

        if not self.is_there:
            return ""
        is_file = parse_address(self.address).get_backend_name() == "sqlite"
        try:
            self.ask(lambda campaign: campaign.runs(limit=1))
        except OrienteerError as error:
            if is_file:  # unlike a server, a file does not come back by itself
                raise
            return error.message
        return ""

    def ask(self, question: Callable[[Campaign], T]) -> T:
        """The answer of the database; raises an OrienteerError if there is none or it is away."""
        if not self.is_there:
            hint = "Start the dashboard with --campaign FILE."
            raise Refused(404, "The dashboard was started without a campaign.", hint)
        with self._guard:
            if self._campaign is None:
                from orienteer.campaign.campaign import Campaign

                self._campaign = Campaign.open(self.address, patience_s=_PATIENCE_S)
            campaign = self._campaign
        return question(campaign)

    def runs(self) -> list[dict[str, Any]]:
        """All runs of the campaign at the last successful read; ``trouble`` says why a newer one failed."""
        if not self.is_there:
            return []
        is_old = time.monotonic() - self._at > (_REST_S if self.trouble else _AGE_S)
        if is_old and self._asking.acquire(blocking=self._at == _NEVER):
            n_written = self._n_written
            try:
                self._runs = self.ask(_all_runs)
                self._by_folder = {
                    os.path.realpath(run["folder"]): run for run in self._runs if run.get("folder")
                }
                self.trouble = ""
            except OrienteerError as error:
                self.trouble = error.message
            finally:
                # If anything was written meanwhile, it may be missing: read again next time.
                self._at = time.monotonic() if n_written == self._n_written else _NEVER
                self._asking.release()
        return self._runs

    def by_folder(self) -> dict[str, dict[str, Any]]:
        """The runs that have a folder, by its real path."""
        self.runs()
        return self._by_folder

    def name_of(self, folder: str, kind: str) -> str:
        """The name of the run in a folder in the campaign; a run that it does not know is added."""
        self.forget()
        known = self.by_folder().get(os.path.realpath(folder))
        if self.trouble:
            raise Refused(503, self.trouble, "Try again in a while.")
        if known is not None:
            return str(known["name"])
        name, _ = self.ask(lambda campaign: campaign.add_run_at(folder, kind=kind or None))
        self.forget()
        return name

    def forget(self) -> None:
        """Mark the copy of the runs as outdated, because something was written."""
        self._n_written += 1
        self._at = _NEVER


def _all_runs(campaign: Campaign) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < _MOST_RUNS:
        total, some = campaign.runs(offset=len(found), limit=_AT_ONCE)
        found += some
        if not some or len(found) >= total:
            break
    return found
