"""Two PostgreSQL servers under Patroni and etcd. Every port is fixed, so a trial runs it in a network namespace of its own."""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time
import urllib.request

from service import Failed, Process, expect, run, wait_until

PACKAGES = {"patroni": "patroni", "etcd": "etcd-server", "pg_config": "postgresql", "nft": "nftables", "setpriv": "util-linux"}
# Seconds. A primary that is gone is replaced after the first one at the latest.
TIMES = {"ttl": 8, "loop_wait": 1, "retry_timeout": 3}
AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
DATABASE = "site"
STAND_LIMIT = 90


class Stuck(Failed):
    """The cluster does not become whole again after a failover, which is no fault of the service."""


class Node:
    """One machine: PostgreSQL, and the Patroni that runs it."""

    def __init__(self, folder, number, synchronous):
        self.folder, self.name = folder, f"node{number}"
        self.port, self.rest, self.etcd = 5500 + number, 8600 + number, 2500 + number
        self.patroni = None
        users = {"superuser": "postgres", "replication": "standby", "rewind": "rewinder"}
        settings = {
            "scope": "trial", "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self.rest}", "connect_address": f"127.0.0.1:{self.rest}"},
            # As proxies: otherwise Patroni finds the address of the other node's etcd, which a partition leaves open.
            "etcd3": {"hosts": [f"127.0.0.1:{self.etcd}"], "use_proxies": True},
            "bootstrap": {
                "dcs": {**TIMES, "synchronous_mode": synchronous, "maximum_lag_on_failover": 1 << 30,
                        "postgresql": {"use_pg_rewind": True, "use_slots": True,
                                       "parameters": {"wal_log_hints": "on", "max_connections": 60}}},
                "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(folder / self.name), "bin_dir": run("pg_config", "--bindir").strip(),
                "pgpass": str(folder / f"{self.name}.pgpass"), "use_unix_socket": True,
                "authentication": {role: {"username": user, "password": "trial"} for role, user in users.items()},
                "parameters": {"unix_socket_directories": str(folder)},
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                "basebackup": [{"checkpoint": "fast"}], "remove_data_directory_on_rewind_failure": True,
            },
        }
        (folder / f"{self.name}.json").write_text(json.dumps(settings))

    def start(self):
        self.patroni = Process(self.folder, self.name, *AS_POSTGRES, "patroni", self.folder / f"{self.name}.json")

    def processes(self):
        """Patroni, the postmaster and its children."""
        found = [self.patroni.process.pid]
        with contextlib.suppress(OSError, ValueError, IndexError):
            postmaster = int((self.folder / self.name / "postmaster.pid").read_text().splitlines()[0])
            children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            found += [postmaster, *map(int, children)]
        return found

    def signal(self, number):
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self):
        """As if the machine lost power."""
        self.signal(signal.SIGKILL)
        self.patroni.process.wait()

    def cut_off(self):
        """Drops what others send to this machine, and what it sends to etcd. Connections stay open and silent."""
        drop_packets_to(self.port, self.rest, self.etcd)

    def state(self, of="patroni"):
        """What Patroni says of this node, or of the whole cluster."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/{of}", timeout=2) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return {}

    def sql(self, statement, database="postgres", limit=60):
        done = subprocess.run(["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database,
                               "-c", statement], capture_output=True, text=True, timeout=limit)
        expect(done.returncode == 0, f"psql on {self.name}: {done.stderr}")
        return done.stdout.strip()


def drop_packets_to(*ports, sender=""):
    """`sender` restricts it to those that match, such as `meta skuid 0`."""
    for command in ["add table inet cut", "add chain inet cut out { type filter hook output priority 0 ; }",
                    f"add rule inet cut out {sender} tcp dport {{ {', '.join(map(str, ports))} }} drop"]:
        run("nft", *command.split())


def heal():
    """Ends what `drop_packets_to` began."""
    run("nft", "delete", "table", "inet", "cut")


class Cluster:
    """Runs until the end of a `with` block."""

    def __init__(self, folder, synchronous=True):
        self.folder, self.synchronous = folder, synchronous
        folder.mkdir()
        owner = pwd.getpwnam("postgres")
        for path in [folder, *folder.parents]:
            if path.stat().st_mode & 0o005 != 0o005 and path.is_relative_to("/tmp"):
                path.chmod(0o755)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.nodes = [Node(folder, number, synchronous) for number in (1, 2)]
        self.etcd = None

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgres://postgres@{hosts}/{DATABASE}"

    def start_etcd(self):
        clients = ",".join(f"http://127.0.0.1:{port}" for port in [2500, *(node.etcd for node in self.nodes)])
        peer = "http://127.0.0.1:2510"
        self.etcd = Process(self.folder, "etcd", "etcd", "--name", "etcd", "--data-dir", self.folder / "etcd",
                            "--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peer,
                            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"etcd={peer}")
        self.etcd.wait_for(("127.0.0.1", 2500))

        def decided():
            # Before that, Patroni ends when it starts.
            try:
                with urllib.request.urlopen("http://127.0.0.1:2500/version", timeout=2) as answer:
                    return json.load(answer)["etcdcluster"] != "not_decided"
            except (OSError, ValueError):
                return False
        wait_until("etcd knows the version of its cluster", decided)

    def __enter__(self):
        try:
            self.start_etcd()
            self.nodes[0].start()
            try:
                wait_until("the first node is primary", self.primary, STAND_LIMIT)
            except Failed as failed:
                raise self._with_logs(failed) from None
            self.nodes[1].start()
            self.wait_until_whole()
            self.primary().sql(f"CREATE DATABASE {DATABASE}")
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for node in self.nodes:
            if node.patroni:
                node.kill()
        if self.etcd:
            self.etcd.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def primary(self):
        """The node that takes writes, or None."""
        for node in self.nodes:
            state = node.state()
            if state.get("role") in ("master", "primary") and state.get("state") == "running":
                return node
        return None

    def other(self, node):
        return next(other for other in self.nodes if other is not node)

    def wait_until_whole(self):
        """Waits for a primary with a standby that follows it, as synchronously as it should."""
        def streams():
            primary = self.primary()
            followers = primary.state().get("replication") or [] if primary else []
            return any(one["state"] == "streaming" and one["application_name"] == self.other(primary).name for one in followers)

        def whole():
            # As etcd has it: only a standby that is named there is promoted.
            wanted = "sync_standby" if self.synchronous else "replica"
            members = (self.primary() or self.nodes[0]).state("cluster").get("members", [])
            return streams() and any(one["role"] == wanted for one in members)
        try:
            wait_until("a primary with its standby", whole, STAND_LIMIT)
        except Failed as failed:
            raise Stuck(self._with_logs(failed)) from None

    def _with_logs(self, failed):
        logs = [f"--- {node.name}\n{node.patroni.log.read_text()[-3000:]}" for node in self.nodes if node.patroni]
        return Failed("\n".join([str(failed), *logs]))

    def wait_for_promotion(self, node, limit=60):
        """Returns the time when the node has left recovery."""
        waiting = "DO $$ BEGIN WHILE pg_is_in_recovery() LOOP PERFORM pg_sleep(0.02); END LOOP; END $$"
        try:
            node.sql(waiting, limit=limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"{node.name} was not promoted within {limit} s\n{node.patroni.log.read_text()[-3000:]}") from None
        return time.monotonic()
