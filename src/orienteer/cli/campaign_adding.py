"""A path becomes a run of a campaign: data, a run directory, or a live run with its shots."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orienteer.errors import FileError

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign


def add_path(campaign: "Campaign", path: Path, name: str, sample: str) -> str:
    """Add what lies at a path, or bring it up to date; the name of the run."""
    from orienteer.campaign.facts import read_facts
    from orienteer.campaign.names import name_of
    from orienteer.run.directory import RunDirectory
    from orienteer.source.journal import is_live_run

    if not path.exists():
        raise FileError(path, "there is no such file or folder.")
    whole = path.absolute()
    run = name or name_of(whole.stem if path.is_file() else whole.name)
    if is_live_run(path):
        campaign.add_run(run, folder=whole, sample=sample, kind="live")
        _add_shots(campaign, run, path)
    elif RunDirectory(path).is_run:
        described = RunDirectory(path).describe()
        data = described["input"].get("path")
        campaign.add_run(run, folder=whole, data=data, sample=sample, kind=str(described["method"]))
        campaign.put_facts(run, **read_facts(whole))
    else:
        campaign.add_run(run, data=whole, sample=sample, kind="data")
    return run


def _add_shots(campaign: "Campaign", run: str, path: Path) -> None:
    from orienteer.campaign.feeding import feed
    from orienteer.source.journal import JournalReader

    reader = JournalReader(path)
    reader.refresh()

    def read(first: int, at_most: int) -> dict[str, Any]:
        last = max(first, min(reader.n_shots, first + at_most))
        return reader.shots(reader.columns, slice(first, last))

    feed(campaign, run, read)
