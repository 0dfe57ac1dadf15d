"""``orienteer serve``: a web page about runs, while they work and afterwards."""

import shlex
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json
from orienteer.cli.options import AsJson
from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError


def serve(
    roots: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER...", help="Folders with runs; by default the one you are in."),
    ] = None,
    campaign: Annotated[
        str, typer.Option(metavar="FILE|URL", help="Also show the database of this beam time.")
    ] = "",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.", min=0, max=65535)] = 8765,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on, to serve other machines; an SSH tunnel is safer."
        ),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Another host name by which browsers may address the server."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", metavar="", help="Show everything and change nothing.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the token in this file, so that the next start uses the same."
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to log refused requests.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show runs, live data and the campaign on a web page of this machine."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ModuleNotFoundError as error:
        raise OrienteerError(
            f"the page needs {error.name}, which is not installed.",
            f"Install it: {how_to_install('web')}.",
        ) from error
    from orienteer.dashboard.access_log import default_path
    from orienteer.dashboard.campaign_book import CampaignBook
    from orienteer.dashboard.serving import Server, token_of

    if trouble := CampaignBook(campaign).check():
        messages.print(f"[yellow]beware[/] {escape(trouble)} The page will try again.", soft_wrap=True)
    server = Server(
        roots or [Path()],
        host=host,
        port=port,
        token=token_of(token_file) if token_file else "",
        names=allow_host or (),
        is_read_only=read_only,
        campaign=campaign,
        log=log or default_path(),
    )
    try:
        if as_json:
            print_json({"address": server.address, "port": server.port, "token": server.gate.token})
        else:
            output.print(f"Open   {server.address}", style="bold", markup=False, soft_wrap=True)
            _say_how_to_reach(server.port, server.is_only_here)
        sys.stdout.flush()  # a reader on a pipe waits for the address
        server.run()
    finally:
        server.close()


def _say_how_to_reach(port: int, is_only_here: bool) -> None:
    here = shlex.quote(socket.gethostname())
    if is_only_here:
        tunnel = f"ssh -N -L {port}:127.0.0.1:{port} {here}"
        text = f"From another machine, run {tunnel}, then open the same address there."
        messages.print(escape(text), soft_wrap=True)
        return
    text = (
        "Other machines can reach this server, and what it sends is not encrypted: anyone who listens on the "
        "network can read it, token included. An SSH tunnel is safer."
    )
    messages.print(f"[yellow]beware[/] {escape(text)}", soft_wrap=True)
