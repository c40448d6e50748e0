"""A mail server that accepts everything, and keeps the recipients, the times, and what had which Message-ID."""

import asyncio
import collections
import hashlib
import random
import re
import threading
import time


def _message_id(mail):
    found = re.search(rb"^Message-ID:\s*(<[^>]*>)", mail, re.IGNORECASE | re.MULTILINE)
    return found and found[1].decode()


class Sink:
    """Answers after a random time up to `slowest` seconds."""

    def __init__(self, slowest=0):
        self.recipients, self.times, self.slowest = collections.Counter(), [], slowest
        self.contents = collections.defaultdict(set)  # digests of the mails, by Message-ID
        self.arrived, ready = threading.Condition(), threading.Event()

        async def serve():
            server = await asyncio.start_server(self._session, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
        ready.wait()

    async def _session(self, reader, writer):
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the sender was killed
        finally:
            writer.close()

    async def _converse(self, reader, writer):
        writer.write(b"220 sink\r\n")
        recipient = None
        while line := await reader.readline():
            command = line[:4].upper()
            if command == b"RCPT":
                recipient = re.search(rb"<([^>]*)>", line)[1].decode().lower()
            if command == b"DATA":
                writer.write(b"354 go on\r\n")
                mail = await reader.readuntil(b"\r\n.\r\n")
                with self.arrived:
                    self.contents[_message_id(mail)].add(hashlib.sha256(mail).digest())
                    self.recipients[recipient] += 1
                    self.times.append(time.monotonic())
                    self.arrived.notify_all()
                if self.slowest:
                    await asyncio.sleep(random.uniform(0, self.slowest))
            writer.write(b"221 bye\r\n" if command == b"QUIT" else b"250 OK\r\n")
            if command == b"QUIT":
                return

    def wait_for(self, letters, ended):
        """Waits until so many letters have arrived in all, or `ended` says that no more will."""
        with self.arrived:
            while len(self.times) < letters and not ended():
                self.arrived.wait(0.05)
