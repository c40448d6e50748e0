"""Clients that send requests at a given rate whatever the server does (open loop), or one after another (closed loop)."""

import asyncio
import collections
import time

# When a client stops waiting for its answer.
PATIENCE = 5
# A connection that was idle for longer is not used again: the server is about to close it.
MAX_IDLE = 3

# When it was due after the start of the load, its status (0 without an answer), and the seconds from that time to its end.
Outcome = collections.namedtuple("Outcome", "due status seconds")


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


class Exchange(asyncio.Protocol):
    """A connection of HTTP/1.1 with one request at a time. Calls `ended` with the status, or 0."""

    def __init__(self):
        self.transport, self.received, self.ended, self.unsent, self.last_use = None, b"", None, None, 0.0

    def send(self, request, ended):
        self.received, self.ended = b"", ended
        if self.transport:
            self.transport.write(request)
        else:
            self.unsent = request

    def connection_made(self, transport):
        self.transport = transport
        if self.unsent:
            transport.write(self.unsent)

    def data_received(self, data):
        self.received += data
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if separator:
            lower = head.lower()
            length = int(lower.partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0])
            if len(body) >= length:
                self._end(int(head[9:12]), b"\r\nconnection: close" not in lower)

    def connection_lost(self, _):
        self._end(0, False)

    def give_up(self):
        if self.transport:
            self.transport.abort()
        self._end(0, False)

    def _end(self, status, reusable):
        ended, self.ended, self.last_use = self.ended, None, time.monotonic()
        if ended:
            ended(self, status, reusable)


class Clients:
    """Sends requests that `make` returns to a port of this machine, and keeps the outcomes."""

    def __init__(self, port, make):
        self.port, self.make, self.idle, self.waiting = port, make, [], {}
        self.outcomes, self.lags, self.sent = [], [], 0

    def _begin(self, due, start, on_end=None):
        # The one that was used last is the last of the list.
        if self.idle and time.monotonic() - self.idle[-1].last_use > MAX_IDLE:
            self.close()
        exchange = self.idle.pop() if self.idle else Exchange()
        if exchange.transport is None:
            asyncio.ensure_future(self._connect(exchange))
        self.waiting[exchange] = start + due

        def ended(exchange, status, reusable):
            self.waiting.pop(exchange, None)
            self.outcomes.append(Outcome(due, status, time.monotonic() - start - due))
            if reusable:
                self.idle.append(exchange)
            if on_end:
                on_end()
        exchange.send(self.make(self.sent), ended)
        self.sent += 1

    async def _connect(self, exchange):
        try:
            await asyncio.get_running_loop().create_connection(lambda: exchange, "127.0.0.1", self.port)
        except OSError:
            exchange.give_up()

    def _give_up(self):
        late = time.monotonic() - PATIENCE
        for exchange in [exchange for exchange, due in self.waiting.items() if due < late]:
            exchange.give_up()

    async def _finish(self):
        while self.waiting:
            self._give_up()
            await asyncio.sleep(0.01)
        self.close()

    def close(self):
        for exchange in self.idle:
            exchange.transport.abort()
        self.idle = []

    async def open_loop(self, rate, seconds, ended=lambda: False):
        """Returns the outcomes, in the order of their ends. The delay of each arrival is kept in `lags`. The load lasts for so many
        seconds, or until `ended` says that it does."""
        start, arrivals, swept = time.monotonic(), 0, 0
        while (now := time.monotonic() - start) < seconds and not ended():
            while arrivals / rate <= now:
                self.lags.append(time.monotonic() - start - arrivals / rate)
                self._begin(arrivals / rate, start)
                arrivals += 1
            if now - swept > 0.05:
                self._give_up()
                swept = now
            await asyncio.sleep(0.001)
        await self._finish()
        return self.outcomes

    async def closed_loop(self, clients, seconds):
        """Each client sends the next request after its answer. Returns the outcomes."""
        start = time.monotonic()

        def next_request():
            now = time.monotonic() - start
            if now < seconds:
                self._begin(now, start, next_request)
        for _ in range(clients):
            next_request()
        while time.monotonic() - start < seconds:
            self._give_up()
            await asyncio.sleep(0.05)
        await self._finish()
        return self.outcomes
