"""Add a path to a campaign as a run: data, a run directory, or a live run with its shots."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orienteer.compute.nearest import meant_instead
from orienteer.errors import FileError

if TYPE_CHECKING:
    from orienteer.campaign.campaign import Campaign


def add_path(campaign: "Campaign", path: Path, name: str, sample: str) -> str:
    """Add the run at a path, or bring it up to date; returns the name of the run.

    name : if empty, that of the path, or a variant if another run has that name.
    """
    from orienteer.campaign.facts import read_facts
    from orienteer.live.standing import read_live_standing
    from orienteer.run.directory import RunDirectory
    from orienteer.source.frame_tags import FRAME_TAGS, read_frame_tags
    from orienteer.source.journal import is_live_run

    if not path.exists():
        raise FileError(path, "there is no such file or folder.", meant_instead(path, "Check the path."))
    if is_live_run(path):
        # Check this before reading its shots: a live run that is not at work now will get no more.
        is_open = read_live_standing(path).state == "working"
        run = _add(campaign, name, path.resolve(), sample=sample, kind="live", is_open=True)
        _add_shots(campaign, run, path)
        campaign.put_frame_tags(run, read_frame_tags(path / FRAME_TAGS))
        if not is_open:
            campaign.close_run(run)
    elif RunDirectory(path).is_run:
        described = RunDirectory(path).describe()
        facts = {"data": described["input"].get("path"), "kind": str(described["method"])}
        run = _add(campaign, name, path.absolute(), sample=sample, **facts)
        campaign.put_facts(run, **read_facts(path.absolute()))
        campaign.put_frame_tags(run, read_frame_tags(path / FRAME_TAGS))
    else:
        _check_data(path)
        run = _add(campaign, name, path.absolute(), is_folder=False, sample=sample, kind="data")
    return run


def _check_data(path: Path) -> None:
    """Refuse what no step could use: a file that holds no patterns, or a folder without data."""
    from orienteer.compute.reading import is_hdf5, read_head
    from orienteer.source.opening import recognise

    if path.is_file():
        recognise(path)
        return
    files = (each for each in sorted(path.iterdir()) if each.is_file() and each.stat().st_size)
    if not any(is_hdf5(read_head(each, "file")) for each in files):
        raise FileError(
            path,
            "is not a run and holds no data.",
            "Give a file of patterns, a folder of HDF5 files, a run or a live run.",
        )


def _add(campaign: "Campaign", name: str, path: Path, is_folder: bool = True, **facts: Any) -> str:
    if not name:
        return campaign.add_run_at(path, is_folder=is_folder, **facts)[0]
    place: dict[str, Any] = {"folder" if is_folder else "data": path}
    campaign.add_run(name, **place, **facts)
    return name


def _add_shots(campaign: "Campaign", run: str, path: Path) -> None:
    from orienteer.campaign.feeding import feed
    from orienteer.source.journal import JournalReader

    reader = JournalReader(path)
    reader.refresh()

    def read(first: int, at_most: int) -> dict[str, Any]:
        last = max(first, min(reader.n_shots, first + at_most))
        return reader.retrying(lambda: reader.shots(reader.columns, slice(first, last)))

    feed(campaign, run, read)
