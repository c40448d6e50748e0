"""Clients that write to a service all the time, what they were told, and how that is compared with what is stored."""

import collections
import http.client
import json
import random
import threading
import time

from instance import HOST
from service import expect, wait_until

CLIENTS = 6
# For one request: the service answers within five seconds.
ANSWER_LIMIT = 8
PATHS = {"download": "/api/download", "join": "/api/waitlist", "message": "/api/contact"}
# Which earlier request of the same person makes `already` true.
MAKES_KNOWN = {"download": {"download", "join"}, "join": {"join"}, "message": set()}


class Ledger:
    """What the clients asked for and were told. A key is the kind of a request, and the address or the message."""

    def __init__(self):
        self.lock = threading.Lock()
        self.tried, self.acknowledged = collections.Counter(), collections.Counter()
        self.refused, self.unanswered, self.total, self.last = 0, 0, 0, 0.0
        self.slowest, self.wrong = 0.0, []

    def begin(self, key):
        with self.lock:
            self.tried[key] += 1

    def record(self, key, status, already, knew_before, may_have, seconds):
        """`status` is None if there was no answer. `knew_before` says whether an earlier request was acknowledged that makes
        `already` true, `may_have` whether one was sent."""
        with self.lock:
            if status == 200:
                self.acknowledged[key] += 1
                self.total += 1
                self.last = time.monotonic()
                if already is not None and (already < knew_before or already > may_have):
                    self.wrong.append(f"`already` is {already} for {key}")
            elif status == 503:
                self.refused += 1
            elif status is None:
                self.unanswered += 1
            else:
                self.wrong.append(f"{key} got the answer {status}")
            if status is not None:
                self.slowest = max(self.slowest, seconds)

    def check(self, execute):
        """Compares what was acknowledged with what is stored; `execute` runs SQL and returns lines. Returns how many requests are
        stored that were not acknowledged."""
        stored = collections.Counter()
        for row in execute("SELECT kind, address, COUNT(*) FROM signups GROUP BY 1, 2"):
            kind, address, times = row.split("|")
            stored[kind, address] = int(times)
        for row in execute("SELECT body, COUNT(*) FROM messages GROUP BY 1"):
            body, times = row.rsplit("|", 1)
            stored["message", body] = int(times)

        def at_most(key):
            return min(self.tried[key], 1) if key[0] == "message" else self.tried[key]
        missing = [key for key, times in self.acknowledged.items() if stored[key] < min(times, at_most(key))]
        expect(not missing, f"{len(missing)} acknowledged requests are missing, such as {missing[:1]}")
        doubled = [key for key, times in stored.items() if times > at_most(key)]
        expect(not doubled, f"{len(doubled)} requests are stored more often than they were sent, such as {doubled[:1]}")
        expect(not self.wrong, f"{len(self.wrong)} answers are wrong, such as {self.wrong[:1]}")
        people = set(execute("SELECT address FROM people"))
        nobody = {address for (kind, address), times in self.acknowledged.items() if kind != "message" and times} - people
        expect(not nobody, f"{len(nobody)} people are missing, such as {sorted(nobody)[:1]}")
        return sum(max(0, times - self.acknowledged[key]) for key, times in stored.items())


class Load:
    """Clients at work until the end of a `with` block. Each has people of its own, and repeats a request until it is
    acknowledged."""

    def __init__(self, port, ledger, label, repeats=True, clients=CLIENTS):
        self.port, self.ledger, self.repeats, self.ended = port, ledger, repeats, threading.Event()
        self.threads = [threading.Thread(target=self._client, args=(f"{label}.{number}",), daemon=True) for number in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(2 * ANSWER_LIMIT)

    def wait_for(self, requests, limit=60):
        """Waits until so many more requests are acknowledged."""
        wanted = self.ledger.total + requests
        wait_until(f"{requests} requests are acknowledged", lambda: self.ledger.total >= wanted, limit, pause=0.002)

    def _client(self, label):
        connection, number = Connection(self.port), 0
        sent, known = collections.defaultdict(set), collections.defaultdict(set)
        while not self.ended.is_set():
            number += 1
            # Somebody new, or somebody from before.
            person = f"{label}.{random.choice([number, random.randint(1, number)])}@example.com"
            kind = random.choice(["download", "join", "message"])
            while not self._request(connection, kind, person, f"message {number} of {label}", sent[person], known[person]):
                if not self.repeats or self.ended.wait(0.02):
                    break

    def _request(self, connection, kind, person, text, sent, known):
        key, body = (kind, person), {"email": person}
        if kind == "message":
            key, body = (kind, text), {"email": person, "message": text}
        before, perhaps = bool(known & MAKES_KNOWN[kind]), bool(sent & MAKES_KNOWN[kind])
        sent.add(kind)
        self.ledger.begin(key)
        began = time.monotonic()
        status, answer = connection.post(PATHS[kind], body)
        if status == 200:
            known.add(kind)
        already = answer.get("already") if MAKES_KNOWN[kind] else None
        self.ledger.record(key, status, already, before, perhaps, time.monotonic() - began)
        return status == 200


class Connection:
    """One connection to a service, opened again when it was lost."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def post(self, path, members):
        """Returns the status and the JSON of the answer; None and nothing if there is no answer."""
        return self.post_bytes(path, json.dumps(members).encode())

    def post_bytes(self, path, content, headers=None):
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_LIMIT)
            self.connection.request("POST", path, content, headers or {"Host": HOST, "Content-Type": "application/json"})
            answer = self.connection.getresponse()
            body = answer.read()
            if answer.will_close:
                self._close()
            return answer.status, json.loads(body)
        except (OSError, ValueError, http.client.HTTPException):
            self._close()
            return None, {}

    def _close(self):
        if self.connection:
            self.connection.close()
        self.connection = None
