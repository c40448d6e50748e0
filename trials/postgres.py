"""A PostgreSQL server of a trial's own."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from service import expect, free_port, run


class Postgres:
    """Runs until the end of a `with` block, on a free port of this machine. PostgreSQL refuses to run as root."""

    def __init__(self):
        self.programs = pathlib.Path(run("pg_config", "--bindir").strip())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="porchlight-postgres-"))
        self.port = free_port()
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)

    def _run(self, program, *arguments):
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [str(part) for part in [*user, self.programs / program, *arguments]]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True)
        expect(done.returncode == 0, f"{program}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def __enter__(self):
        data, log = self.folder / "data", self.folder / "log"
        self._run("initdb", "--pgdata", data, "--auth", "trust", "--username", "postgres", "--encoding", "UTF8")
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "start", "--wait", "--pgdata", data, "--log", log, "--options", options)
        return self

    def __exit__(self, *_):
        try:
            self._run("pg_ctl", "stop", "--mode", "immediate", "--pgdata", self.folder / "data")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def create(self, name):
        """Makes a database and returns its URL."""
        self._run("createdb", "--host", "127.0.0.1", "--port", str(self.port), "--username", "postgres", name)
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, url, sql):
        """Runs SQL in a database, and returns the rows as lines."""
        return self._run("psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--command", sql, url).splitlines()
