"""The mail server of the tests (tests/smtp/server.py), which misbehaves in the ways that a trial commands."""

import itertools
import json
import subprocess
import threading

from service import REPOSITORY, expect, run, wait_until

FOLDER = REPOSITORY / "tests/smtp"
PYTHON = FOLDER / ".venv/bin/python"
COMMAND_LIMIT = 30


class Relays:
    """The process that runs the mail servers, until the end of a `with` block."""

    def __init__(self):
        if not PYTHON.exists():
            run(REPOSITORY / "suites/prepare")
        self.process = subprocess.Popen([PYTHON, FOLDER / "server.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.numbers, self.relays, self.lock = itertools.count(), {}, threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            number, event = json.loads(line)
            self.relays[number].happened(event)

    def open(self, **options):
        number = next(self.numbers)
        relay = self.relays[number] = Relay(lambda *words: self._send([number, *words]))
        self._send([number, "open", options])
        wait_until("the mail server listens", lambda: relay.port, COMMAND_LIMIT)
        return relay

    def _send(self, words):
        with self.lock:
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()


class Relay:
    """One mail server, and what it said: the mails that it took, and how often it misbehaved. It takes a mail although it does not
    say so if it is silent or gone at the stage `answer`."""

    def __init__(self, send):
        self.send, self.port = send, None
        # What it was told to do when it took each mail.
        self.mails, self.behaviour, self.done, self.faults, self.left = [], "accept", 0, 0, 0
        self.arrived = threading.Condition()

    def happened(self, event):
        with self.arrived:
            self.port = event.get("port", self.port)
            self.faults += any(name in event for name in ("faulty", "refused", "dropped", "held"))
            self.left += "gave_up" in event
            if "mail" in event:
                self.mails.append((event["mail"], self.behaviour))
                self.faults += self.behaviour.endswith(" answer")
            if "done" in event:
                self.behaviour, self.done = event["done"], self.done + 1
            self.arrived.notify_all()

    def command(self, words):
        """Changes how it behaves, and waits until it does."""
        done = self.done
        self.send(words)
        self.wait_for(f"the mail server does `{words}`", lambda: self.done > done, COMMAND_LIMIT)

    def wait_for(self, what, condition, limit):
        with self.arrived:
            expect(self.arrived.wait_for(condition, limit), f"{what}: not within {limit} s")
