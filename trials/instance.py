"""Porchlight on one database, as a trial runs it: instances, commands and requests."""

import http.client
import json
import sqlite3
import subprocess
import time
import urllib.parse

from service import Answer, Process, environment, expect, free_port, wait_until

HOST = "troupe.example"
MAKERS = "makers@troupe.example"
REQUEST_LIMIT = 15


def request(port, method, path, body=None, **headers):
    """Sends one request on a connection of its own. No answer is an OSError or an HTTPException."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_LIMIT)
    try:
        connection.request(method, path, body, {"Host": HOST, **headers})
        answer = connection.getresponse()
        headers = {name.lower(): answer.getheader(name) for name in answer.headers}
        return Answer(answer.status, "1.1", headers, answer.read())
    finally:
        connection.close()


def post(port, path, members):
    return request(port, "POST", path, json.dumps(members), **{"Content-Type": "application/json"})


class Installation:
    """A folder, a database and a mail server that any program may be started with."""

    def __init__(self, folder, sink, database=None, postgres=None, letter_rate=1000):
        folder.mkdir()
        self.folder, self.sink, self.database, self.postgres = folder, sink, database, postgres
        self.settings = ["--data-dir", folder / "data", "--base-url", f"https://{HOST}",
                         "--smtp-url", f"smtp://127.0.0.1:{sink.port}", "--mail-from", f"Troupe <hello@{HOST}>",
                         "--contact-to", MAKERS, "--postal-address", "1 Lamp Street, Oldtown", "--letter-rate", str(letter_rate),
                         *(["--database-url", database] if database else [])]
        # Without settings of the caller.
        self.place = {"cwd": folder, "env": {"HOME": str(folder), **environment(folder)}}

    def use(self, database):
        """Commands and instances use another database from now on."""
        self.settings = [database if part == self.database else part for part in self.settings]
        self.database = database

    def command(self, program, *arguments):
        """Runs a command to its end and returns its standard output. Its failing is a finding."""
        done = self._done(program, arguments)
        expect(done.returncode == 0, f"{' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, program, *arguments):
        return json.loads(self.command(program, *arguments, "--json"))

    def refused(self, program, *arguments):
        """Runs a command that has to fail, and returns what it says."""
        done = self._done(program, arguments)
        expect(done.returncode != 0, f"{' '.join(map(str, arguments))} is not refused:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def _done(self, program, arguments):
        command = [str(part) for part in [program, *arguments, *self.settings]]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **self.place)

    def begin(self, program, *arguments):
        """Starts a command that the trial will kill."""
        command = [str(part) for part in [program, *arguments, *self.settings]]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                **self.place)

    def execute(self, sql):
        """Changes or reads the database behind the back of the programs."""
        if self.postgres:
            return self.postgres.execute(self.database, sql)
        connection = sqlite3.connect(self.folder / "data/porchlight.db")
        try:
            with connection:
                return ["|".join(map(str, row)) for row in connection.execute(sql)]
        finally:
            connection.close()

    def publish(self, program):
        """Publishes a small release, so that downloads are offered."""
        image = self.folder / "image.dmg"
        image.write_bytes(b"image" * 1000 + b"koly".ljust(512, b"\0"))
        self.command(program, "release", "publish", image, "--version", "1.4.0")

    def serve(self, program, name, *settings, port=None, ops_port=None, **variables):
        return Instance(self, program, name, settings, port or free_port(), ops_port or free_port(), variables)


class Instance(Process):
    """One `porchlight serve`. The same name and ports start it again."""

    def __init__(self, installation, program, name, settings, port, ops_port, variables):
        self.port, self.ops_port = port, ops_port
        # The ops listener asks for the token if there is one.
        self.token = settings[settings.index("--ops-token") + 1] if "--ops-token" in settings else ""
        started = time.monotonic()
        super().__init__(installation.folder, name, program, "serve", "--listen", f"127.0.0.1:{port}",
                         "--ops-listen", f"127.0.0.1:{self.ops_port}", *settings, *installation.settings, **variables)
        self.wait_for(("127.0.0.1", port))
        try:
            wait_until(f"{name} is ready", self.is_ready, pause=0.01)
            self.ready_after = time.monotonic() - started
        except BaseException:
            self.stop()
            raise

    def is_ready(self):
        try:
            return self.ops("/readyz").status == 200
        except OSError:
            return False

    def ops(self, path):
        return request(self.ops_port, "GET", path, Host="127.0.0.1", Authorization=f"Bearer {self.token}")

    def get(self, path, **headers):
        return request(self.port, "GET", path, **headers)

    def post(self, path, members):
        """Sends JSON, and returns the members of the answer. Anything but 200 is a finding."""
        answer = post(self.port, path, members)
        expect(answer.status == 200, f"{self.name}: POST {path}: {answer}")
        return json.loads(answer.body)

    def form(self, path, **fields):
        return request(self.port, "POST", path, urllib.parse.urlencode(fields),
                       **{"Content-Type": "application/x-www-form-urlencoded"})

    def tool(self, tool, **arguments):
        """Calls a tool, and returns its text."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        result = self.post("/mcp", call).get("result", {})
        expect(result and not result.get("isError"), f"{self.name}: {tool}: {result}")
        return result["content"][0]["text"]
