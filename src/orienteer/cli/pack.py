"""``orienteer pack``: this environment as one file that runs wherever it is unpacked."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from orienteer.cli.console import messages, print_json, print_table
from orienteer.cli.options import AsJson, Overwrite, refuse_existing
from orienteer.cli.progress import show_steps
from orienteer.cli.stopping import telling_what_is_written
from orienteer.compute.words import counted


def pack(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="A .tar.zst, .tar.gz or .tar file; by default named by version."
        ),
    ] = None,
    with_: Annotated[
        list[str],
        typer.Option("--with", metavar="PACKAGE", help="Take this installed package along; may be repeated."),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Pack Python, Orienteer and its packages into one file, to unpack on the local disks of nodes."""
    from orienteer.cluster.archive import check_name, default_name, write_archive
    from orienteer.cluster.environment import collect

    path = out or Path(default_name())
    check_name(path)
    refuse_existing(path, overwrite)
    with telling_what_is_written(path):
        environment = collect(with_)
        with show_steps("Looking"):
            packed = write_archive(path, environment)
    if as_json:
        print_json(
            {
                **dataclasses.asdict(packed),
                "distributions": environment.distributions,
                "left_out": environment.left_out,
            }
        )
        return
    for what in environment.left_out:
        messages.print(f"[yellow]left out[/] {escape(what)}", soft_wrap=True)
    print_table(
        [
            ("archive", str(path)),
            ("size", f"{packed.packed / 1e6:,.0f} MB, {packed.unpacked / 1e6:,.0f} MB unpacked"),
            (
                "holds",
                f"{counted(packed.n_files, 'file')} of Python and "
                f"{counted(len(environment.distributions), 'package')}",
            ),
            ("in a job", f"orienteer submit RUN.toml --environment {shlex.quote(str(path))}"),
            ("by hand", f"tar -xf {shlex.quote(str(path))} -C FOLDER && FOLDER/bin/orienteer --version"),
        ]
    )
