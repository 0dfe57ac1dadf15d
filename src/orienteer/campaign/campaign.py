"""Campaign: the runs, samples, shots, jobs, tags and notes of a beam time, in one database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from orienteer.campaign import frame_tags, histogram, runs, shots
from orienteer.campaign.address import CampaignError, in_words, parse_address
from orienteer.campaign.database import PATIENCE_S, Database
from orienteer.campaign.jobs import list_jobs
from orienteer.campaign.migrating import migrate, read_version
from orienteer.campaign.rules import list_rules
from orienteer.campaign.schema import run as run_table
from orienteer.errors import FileError

T = TypeVar("T")
_NEWEST_JOBS = 50


class Campaign:
    """An open campaign.

    Every method is one transaction; a run is given by its name or number.  Any number of processes may have
    the same campaign open.  If the server is away for a moment, a call waits and is repeated.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._numbers: dict[str, int] = {}  # of runs by name; these never change

    @classmethod
    def open(
        cls, address: str | PathLike[str], create: bool = False, patience_s: float = PATIENCE_S
    ) -> Campaign:
        """Open a campaign and bring it to the newest layout.

        address : a file, a folder with ``campaign.db``, or a URL such as postgresql://user@host/name.
        create : make the campaign if there is none.
        """
        url = parse_address(address)
        path = Path(str(url.database))
        if url.get_backend_name() == "sqlite" and not path.exists():
            if not create:
                raise FileError(
                    path, "there is no such campaign.", f"Make it: orienteer campaign init {path}"
                )
            if not path.parent.is_dir():
                raise FileError(path, "its folder does not exist.", "Make the folder first.")
        database = Database(url, patience_s)
        try:
            if not create and not read_version(database):
                raise CampaignError(
                    f"{database}: there is no campaign in this database.",
                    f"Make it: orienteer campaign init {in_words(url)}",
                )
            migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Campaign {self.database}>"

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def add_run(
        self,
        name: str,
        folder: str | PathLike[str] | None = None,
        data: str | PathLike[str] | None = None,
        sample: str = "",
        kind: str | None = None,
        is_open: bool | None = None,
    ) -> int:
        """Add a run, or change the given facts of an existing one; returns its number.

        folder : where the run is worked on; data : what was measured; is_open : whether shots may still come.
        """
        facts = _facts(folder, data, sample, kind, is_open)
        return self._write(lambda connection: runs.add_run(connection, name, facts))

    def add_run_at(
        self,
        path: str | PathLike[str],
        data: str | PathLike[str] | None = None,
        sample: str = "",
        kind: str | None = None,
        is_open: bool | None = None,
        is_folder: bool = True,
    ) -> tuple[str, bool]:
        """Add the run at a path, or change the given facts of it; returns its name, and whether it is new.

        It is named after the path.  Runs of different paths get different names: day1/r1 and day2/r1 are two.

        is_folder : whether the path is where the run is worked on; otherwise, it is what was measured.
        """
        facts = _facts(None, data, sample, kind, is_open)
        place = "folder" if is_folder else "data"
        return self._write(lambda connection: runs.add_run_at(connection, str(path), place, facts))

    def close_run(self, run: str | int) -> None:
        """Note that no more shots will come; from now on rules apply to the run."""
        self._write_of(run, lambda connection, number: runs.touch(connection, number, is_open=0))

    def add_sample(self, name: str, about: str = "") -> int:
        """Add a sample, or change its description; returns its number."""
        return self._write(lambda connection: runs.add_sample(connection, name, about))

    def tag(self, run: str | int, add: Iterable[str] = (), remove: Iterable[str] = ()) -> list[str]:
        """Add tags to a run and remove others; returns the tags that it has then."""
        add, remove = list(add), list(remove)
        return self._write_of(run, lambda connection, number: runs.tag_run(connection, number, add, remove))

    def note(self, run: str | int, text: str, author: str = "") -> None:
        """Add a note to a run."""
        written = runs.new_note(text, author)
        self._write_of(run, lambda connection, number: runs.add_note(connection, number, written))

    def put_frame_tags(self, run: str | int, tags: Mapping[str, Iterable[int]]) -> None:
        """Set which events of a run have which tags; this replaces all earlier frame tags of the run."""
        given = {tag: [int(number) for number in ids] for tag, ids in tags.items()}

        def change(connection: Connection, number: int) -> None:
            if frame_tags.put_frame_tags(connection, number, given):
                runs.touch(connection, number)

        self._write_of(run, change)

    def frame_tags(self, run: str | int) -> dict[str, list[int]]:
        """By tag, the ids of the events of a run that have it."""
        return self._read(
            lambda connection: frame_tags.read_frame_tags(connection, runs.find_run(connection, run))
        )

    def put_facts(
        self,
        run: str | int,
        parameters: Mapping[str, Any] | None = None,
        results: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Store parameters, results and files of a run by name; known names are replaced."""
        self._write_of(
            run,
            lambda connection, number: runs.put_facts(
                connection, number, parameters or {}, results or {}, files or {}
            ),
        )

    def add_shots(self, run: str | int, columns: Mapping[str, NDArray[Any]], segment: str) -> bool:
        """Add the shots of a segment; returns False and adds nothing if the segment was added before.

        columns : (N,) each, ``event_id`` and any others; columns with arrays are left out, and NaN means that
            there is no value.
        """
        number = self._number(run)
        return self._write(lambda connection: shots.add_shots(connection, number, columns, segment))

    def n_shots(self, run: str | int) -> int:
        """Number of shots of a run."""
        return self._read(lambda connection: runs.count_shots(connection, run))

    def shots(self, run: str | int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns (N,) of the shots of a run; NaN where a value is not known."""
        return self._read(
            lambda connection: shots.read_shots(connection, runs.find_run(connection, run), names)
        )

    def histogram(self, column: str, run: str | int | None = None, bins: int = 50) -> dict[str, list[Any]]:
        """``edges`` and ``counts`` of a column over the shots of a run, or of all runs; at most ``bins``."""

        def count(connection: Connection) -> dict[str, list[Any]]:
            number = None if run is None else runs.find_run(connection, run)
            return histogram.histogram(connection, column, number, bins)

        return self._read(count)

    def runs(
        self,
        search: str = "",
        tag: str = "",
        sample: str = "",
        sort: str = "-modified",
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many runs match, and one page of them; see :func:`orienteer.campaign.runs.list_runs`."""
        return self._read(
            lambda connection: runs.list_runs(connection, search, tag, sample, sort, offset, limit)
        )

    def run(self, run: str | int) -> dict[str, Any]:
        """Everything that is known of a run; of its shots, only number, range and mean of each column."""

        def describe(connection: Connection) -> dict[str, Any]:
            number = runs.find_run(connection, run)
            return {
                **runs.describe_run(connection, number),
                "frame_tags": frame_tags.count_frame_tags(connection, number),
                "columns": shots.column_sums(connection, number),
                "jobs": list_jobs(connection, run_id=number),
            }

        return self._read(describe)

    def overview(self) -> dict[str, Any]:
        """Samples, sums, rules, the newest jobs, and the columns in which any shot has a value."""

        def look(connection: Connection) -> dict[str, Any]:
            sums = [func.count(), func.sum(run_table.c.n_shots), func.sum(run_table.c.n_hits)]
            n, n_shots, n_hits = connection.execute(select(*sums).select_from(run_table)).one()
            return {
                "samples": runs.list_samples(connection),
                "n_runs": int(n),
                "n_shots": int(n_shots or 0),
                "n_hits": int(n_hits or 0),
                "jobs": list_jobs(connection, newest=_NEWEST_JOBS),
                "rules": list_rules(connection),
                "columns": histogram.column_names(connection),
            }

        return self._read(look)

    def _number(self, run: str | int) -> int:
        if isinstance(run, int):
            return run
        if run not in self._numbers:
            self._numbers[run] = self._read(lambda connection: runs.find_run(connection, run))
        return self._numbers[run]

    def _write(self, work: Callable[[Connection], T]) -> T:
        return self.database.write(work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self.database.read(work)

    def _write_of(self, run: str | int, work: Callable[[Connection, int], T]) -> T:
        return self._write(lambda connection: work(connection, runs.find_run(connection, run)))


def _facts(
    folder: str | PathLike[str] | None,
    data: str | PathLike[str] | None,
    sample: str,
    kind: str | None,
    is_open: bool | None,
) -> dict[str, Any]:
    """The given facts of a run, as the table stores them; None leaves a fact as it is."""
    return {
        "folder": None if folder is None else str(folder),
        "data": None if data is None else str(data),
        "sample": sample or None,
        "kind": kind,
        "is_open": None if is_open is None else int(is_open),
    }
