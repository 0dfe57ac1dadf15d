"""A PostgreSQL server of one's own: loopback only, in a temporary folder, stopped at the end."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0
ACCOUNT = "postgres"


def programs() -> Path | None:
    """The folder of the server's programs; None when they are not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb") or (installed[-1] if installed else None)
    return Path(found).parent if found else None


class Server:
    """A server that can be killed and started again."""

    def __init__(self, folder: Path, is_durable: bool) -> None:
        found = programs()
        assert found is not None
        self.programs = found
        self.folder = folder
        self.is_durable = is_durable
        self.data = folder / "data"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        # The programs refuse to run as root: there the server is another account's.
        self._as: list[str] = []
        if os.geteuid() == 0:
            account = pwd.getpwnam(ACCOUNT)
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._as = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        self._call(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "orienteer",
            "--auth=trust",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
        )

    def url(self, name: str) -> str:
        return f"postgresql://orienteer@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        options += "" if self.is_durable else " -c fsync=off"
        log = str(self.folder / "server.log")
        self._call("pg_ctl", "-D", str(self.data), "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        """End it at once, as a power cut would; what was committed is found again at the next start."""
        self._call("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop", check=False)

    def make_database(self, name: str) -> str:
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def _call(self, program: str, *arguments: str, check: bool = True) -> None:
        done = subprocess.run(
            [*self._as, str(self.programs / program), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would stay open as long as the server lives
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        )
        if check and done.returncode:
            log = self.folder / "server.log"
            raise RuntimeError(f"{program} failed: {log.read_text() if log.exists() else done.returncode}")


@contextmanager
def running_server(is_durable: bool = False) -> Iterator[Server]:
    """A server that runs inside of the block; is_durable : it waits for the disk, as one in service does."""
    folder = Path(tempfile.mkdtemp(prefix="orienteer-postgres-"))
    server: Server | None = None
    try:
        server = Server(folder, is_durable)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
