"""A PostgreSQL server of one's own, in a temporary folder: no port, and stopped however its user ends."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 240.0
ACCOUNT = "postgres"
# Waits until whoever started it closes its input, by ending in whatever way, then stops the server.
GUARD = 'cat > /dev/null; folder="$1"; shift; "$@"; rm -rf "$folder"'


def programs() -> Path | None:
    """The folder of the server's programs; None when they are not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb") or (installed[-1] if installed else None)
    return Path(found).parent if found else None


def why_not() -> str:
    """Why no server can be started here; empty where it can."""
    if programs() is None:
        return "PostgreSQL is not installed"
    if os.geteuid() != 0:
        return ""
    if shutil.which("setpriv") is None:
        return "PostgreSQL does not run as root, and there is no setpriv to change the account"
    if ACCOUNT not in {account.pw_name for account in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no account '{ACCOUNT}'"
    return ""


class Server:
    """A server that can be killed and started again.

    It listens on a socket in its own folder only, so that any number of servers run beside each other.
    """

    def __init__(self, folder: Path, is_durable: bool) -> None:
        found = programs()
        assert found is not None
        self.programs = found
        self.folder = folder
        self.is_durable = is_durable
        self.data = folder / "data"
        # The programs refuse to run as root: there the server is another account's.
        self._as: list[str] = []
        if os.geteuid() == 0:
            account = pwd.getpwnam(ACCOUNT)
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._as = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        options = ["-U", "orienteer", "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        self._call(self._command("initdb", *options))

    def url(self, name: str) -> str:
        return f"postgresql://orienteer@/{name}?host={self.folder}"

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        options += "" if self.is_durable else " -c fsync=off"
        waiting = ["-w", "-t", f"{PATIENCE_S:.0f}"]
        log = str(self.folder / "server.log")
        self._call(self._command("pg_ctl", "-o", options, "-l", log, *waiting, "start"))

    def stop(self) -> None:
        """End it at once, as a power cut would; what was committed is found again at the next start."""
        self._call(self.stop_command, check=False)

    @property
    def stop_command(self) -> list[str]:
        return self._command("pg_ctl", "-m", "immediate", "-w", "stop")

    def make_database(self, name: str) -> str:
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [*self._as, str(self.programs / program), "-D", str(self.data), *arguments]

    def _call(self, command: list[str], check: bool = True) -> None:
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would stay open as long as the server lives
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S + 60,
            check=False,
        )
        if check and done.returncode:
            log = self.folder / "server.log"
            told = log.read_text() if log.exists() else f"status {done.returncode}"
            raise RuntimeError(f"{' '.join(command)} failed: {told}")


@contextmanager
def running_server(is_durable: bool = False) -> Iterator[Server]:
    """A server that runs inside of the block; is_durable : it waits for the disk, as one in service does."""
    # Every database of a test is hundreds of files.
    root = None if is_durable else os.environ.get("PYTEST_DEBUG_TEMPROOT")
    folder = Path(tempfile.mkdtemp(prefix="orienteer-postgres-", dir=root))
    try:
        server = Server(folder, is_durable)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    guard = subprocess.Popen(
        ["sh", "-c", GUARD, "guard", str(folder), *server.stop_command],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert guard.stdin is not None
    try:
        server.start()
        yield server
    finally:
        guard.stdin.close()
        guard.wait(PATIENCE_S)
