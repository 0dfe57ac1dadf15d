"""``orienteer submit`` where there is no Slurm: the script, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def file(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path.cwd() / "config"))
    Path("frames.h5").touch()
    path = Path("r1.toml")
    path.write_text('[run]\ndata = "frames.h5"\n\n[cluster]\nnodes = 2\n')
    return path


def test_a_dry_run_prints_the_script_alone(run: Callable[..., Any], file: Path) -> None:
    shown = run("submit", file, "--dry-run", "--nodes", 4, "--set", "emc.iterations=9")
    assert shown.status == 0, shown.errors
    assert shown.errors == ""
    assert shown.output.startswith("#!/bin/bash\n")
    assert "#SBATCH --nodes=4\n" in shown.output
    assert "\norienteer run r1.toml --set emc.iterations=9 --restarts 2 --notice-s 120 &\n" in shown.output
    assert not Path("r1").exists()


def test_times_and_accounts_are_written_as_slurm_has_them(run: Callable[..., Any], file: Path) -> None:
    shown = run("submit", file, "--dry-run", "--time", "04:00:00", "--account", "12345")
    assert shown.status == 0, shown.errors
    assert "#SBATCH --time=04:00:00\n" in shown.output
    assert "#SBATCH --account=12345\n" in shown.output


def test_json_holds_the_script(run: Callable[..., Any], file: Path) -> None:
    told = run("submit", file, "--dry-run", "--json").json
    assert told["name"] == "r1"
    assert told["runs"] == ["r1"]
    assert "#SBATCH --nodes=2\n" in told["script"]


def test_files_that_ask_for_different_jobs_are_no_array(run: Callable[..., Any], file: Path) -> None:
    Path("r2.toml").write_text('[run]\ndata = "frames.h5"\n\n[cluster]\nnodes = 3\n')
    refused = run("submit", file, "r2.toml", "--dry-run")
    assert refused.status == 2
    assert "r2.toml and r1.toml have different settings under [cluster]" in refused.errors
    assert run("submit", file, "r2.toml", "--dry-run", "--nodes", 1).status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no run is given."),
        (("r1.toml", "--time", "4:00"), "write 4:00:00, 4h or 4min"),
        (("r1.toml", "--time", "60"), "'60' has no unit; write 60min, 60h"),
        (("r1.toml", "--nodes", "0"), "--nodes 0"),
        (("r1.toml", "--site", "nosite"), "there is no site 'nosite'"),
        (("r1.toml", "--after", "x"), "this is not a job"),
        (("r1.toml", "--environment", "env.tar.zst"), "there is no such archive"),
        (("r1.toml", "--environment", "frames.h5"), "is not an archive of an environment"),
        (("nowhere.toml",), "no such settings file"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    run: Callable[..., Any], file: Path, arguments: tuple[str, ...], said: str
) -> None:
    refused = run("submit", *arguments, "--dry-run")
    assert refused.status in (1, 2)
    assert said in refused.errors


def test_without_slurm_there_is_a_hint(
    run: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    refused = run("submit", file)
    assert refused.status == 1
    assert "there is no Slurm on this machine" in refused.errors
    assert "--dry-run shows the script" in refused.errors
    assert not Path("r1").exists()


def test_what_may_not_be_meant_is_noted(run: Callable[..., Any], file: Path) -> None:
    assert "Slurm does not know" in run("submit", file, "--dry-run", "--preemptible").errors
    assert "give --time" in run("submit", file, "--dry-run", "--chain", 2).errors


def test_sites_are_listed_with_the_place_for_ones_own(run: Callable[..., Any], file: Path) -> None:
    shown = run("submit", "--sites").output
    assert "perlmutter" in shown
    assert f"{Path('config').absolute()}/orienteer/sites" in shown
