"""AccessLog: refused requests, one line each, in a file of limited size."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from orienteer.compute.atomic import unwritable
from orienteer.dashboard.refusal import Refused

MOST_BYTES = 1 << 20
_LONGEST = 200


def default_path() -> Path:
    """The default file for refusals, in the user's XDG state folder."""
    home = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
    return home / "orienteer" / "dashboard.log"


class AccessLog:
    """Lines with time, status, address, method and path; the query is left out, as it may hold the token."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._logger = logging.Logger("orienteer dashboard")
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handler = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=1, encoding="ascii")
        except OSError as error:
            raise unwritable(path, error) from error
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger.addHandler(handler)

    def note(self, scope: Any, refusal: Refused) -> None:
        """Write a line about a refused request."""
        client = scope.get("client") or ("unknown", 0)
        method = scope.get("method", scope["type"])
        # ascii() escapes control characters: whatever the path holds, it stays on one line.
        asked = ascii(str(scope.get("path", ""))[:_LONGEST])
        self._logger.warning(
            "%s %s %s %s: %s", refusal.status, client[0], ascii(method), asked, refusal.message
        )

    def close(self) -> None:
        """Close the file."""
        for handler in self._logger.handlers:
            handler.close()
