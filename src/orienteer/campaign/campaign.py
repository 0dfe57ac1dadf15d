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
    """A campaign that is open.

    Every method is one transaction; a run is given by its name or number.  Any number of processes may have
    the same campaign open.  A server that goes away is waited for, and the call is repeated.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._numbers: dict[str, int] = {}  # of runs, which keep theirs for ever

    @classmethod
    def open(
        cls, address: str | PathLike[str], create: bool = False, patience_s: float = PATIENCE_S
    ) -> Campaign:
        """Open a campaign and bring it to the newest layout.

        address : a file, a folder with ``campaign.db``, or a URL such as postgresql://user@host/name.
        create : make it where there is none.
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
        """Let go of the database."""
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
        """Add a run, or change what is given of one that is there; its number.

        folder : where it is worked on; data : what was measured; is_open : whether shots are still to come.
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
        """Add the run that lies at a path, or change what is given of it; its name, and whether it is new.

        It is named after the path, and otherwise than the runs of other paths: day1/r1 and day2/r1 are two.
        is_folder : the path is where it is worked on, and not what was measured.
        """
        facts = _facts(None, data, sample, kind, is_open)
        place = "folder" if is_folder else "data"
        return self._write(lambda connection: runs.add_run_at(connection, str(path), place, facts))

    def close_run(self, run: str | int) -> None:
        """No more shots come; from now on rules apply to it."""
        self._write_of(run, lambda connection, number: runs.touch(connection, number, is_open=0))

    def add_sample(self, name: str, about: str = "") -> int:
        """Add a sample, or say something else about it; its number."""
        return self._write(lambda connection: runs.add_sample(connection, name, about))

    def tag(self, run: str | int, add: Iterable[str] = (), remove: Iterable[str] = ()) -> list[str]:
        """Give a run tags and take others away; those that it has then."""
        add, remove = list(add), list(remove)
        return self._write_of(run, lambda connection, number: runs.tag_run(connection, number, add, remove))

    def note(self, run: str | int, text: str, author: str = "") -> None:
        """Add a note to a run."""
        written = runs.new_note(text, author)
        self._write_of(run, lambda connection, number: runs.add_note(connection, number, written))

    def put_frame_tags(self, run: str | int, tags: Mapping[str, Iterable[int]]) -> None:
        """Say which events of a run have which tags; what was said before is replaced."""
        given = {tag: [int(number) for number in ids] for tag, ids in tags.items()}

        def change(connection: Connection, number: int) -> None:
            if frame_tags.put_frame_tags(connection, number, given):
                runs.touch(connection, number)

        self._write_of(run, change)

    def frame_tags(self, run: str | int) -> dict[str, list[int]]:
        """The ids of the events of a run that have each tag."""
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
        """Say with what a run was made, what came out and where that lies; known names are replaced."""
        self._write_of(
            run,
            lambda connection, number: runs.put_facts(
                connection, number, parameters or {}, results or {}, files or {}
            ),
        )

    def add_shots(self, run: str | int, columns: Mapping[str, NDArray[Any]], segment: str) -> bool:
        """Add the shots of a segment; False where it was added before, and nothing is counted twice.

        columns : (N,) each, ``event_id`` and any others; those of arrays are left out, and NaN is no value.
        """
        number = self._number(run)
        return self._write(lambda connection: shots.add_shots(connection, number, columns, segment))

    def n_shots(self, run: str | int) -> int:
        """How many shots of a run were added."""
        return self._read(lambda connection: runs.count_shots(connection, run))

    def shots(self, run: str | int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns (N,) of the shots of a run; NaN where nothing is known."""
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
        """How many runs fit, and some of them; see :func:`orienteer.campaign.runs.list_runs`."""
        return self._read(
            lambda connection: runs.list_runs(connection, search, tag, sample, sort, offset, limit)
        )

    def run(self, run: str | int) -> dict[str, Any]:
        """Everything that is known of a run; of its shots, what columns there are and how far they reach."""

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
        """Samples, sums, rules, the newest jobs, and the columns of which shots have values."""

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
    """What is given of a run, as the table has it; None: it stays as it is."""
    return {
        "folder": None if folder is None else str(folder),
        "data": None if data is None else str(data),
        "sample": sample or None,
        "kind": kind,
        "is_open": None if is_open is None else int(is_open),
    }
