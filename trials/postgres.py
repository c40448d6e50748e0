"""A PostgreSQL server of a trial's own."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from service import expect, free_port, run


class Postgres:
    """A primary, or the standby of one. Runs until the end of a `with` block, on a free port of this machine. PostgreSQL refuses
    to run as root."""

    def __init__(self, primary=None):
        self.primary = primary
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
        data = self.folder / "data"
        if self.primary:
            self._run("pg_basebackup", "--pgdata", data, "--host", "127.0.0.1", "--port", self.primary.port,
                      "--username", "postgres", "--checkpoint", "fast", "--write-recovery-conf")
        else:
            self._run("initdb", "--pgdata", data, "--auth", "trust", "--username", "postgres", "--encoding", "UTF8")
        self.start()
        return self

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "start", "--wait", "--pgdata", self.folder / "data", "--log", self.folder / "log",
                  "--options", options)

    def stop(self, mode="fast"):
        self._run("pg_ctl", "stop", "--mode", mode, "--pgdata", self.folder / "data")

    def standby(self):
        return Postgres(self)

    def wait_for_standbys(self):
        """From now on a commit is acknowledged when a standby has it, too."""
        url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self.execute(url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute(url, "SELECT pg_reload_conf()")

    def promote(self):
        self._run("pg_ctl", "promote", "--wait", "--pgdata", self.folder / "data")

    def __exit__(self, *_):
        try:
            if (self.folder / "data/postmaster.pid").exists():
                self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def create(self, name):
        """Makes a database and returns its URL."""
        self._run("createdb", "--host", "127.0.0.1", "--port", str(self.port), "--username", "postgres", name)
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, url, sql):
        """Runs SQL in a database, and returns the rows as lines."""
        return self._run("psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--command", sql, url).splitlines()

    def has_caught_up(self):
        """Whether a standby has replayed everything."""
        url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        return self.execute(url, "SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication") == ["t"]
