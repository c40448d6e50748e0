"""A mail server that accepts everything, and keeps the recipients, the times, what had which Message-ID, and the mails if it is
told to."""

import asyncio
import collections
import email
import email.policy
import hashlib
import random
import re
import threading
import time


class Mail(collections.namedtuple("Mail", "sender recipient content")):
    def undated(self):
        """Everything but the date: 0.1.0 wrote the time at which a mail was sent."""
        return [(name, value) for name, value in self.content.items() if name != "Date"], self.content.get_content()


def _message_id(mail):
    found = re.search(rb"^Message-ID:\s*(<[^>]*>)", mail, re.IGNORECASE | re.MULTILINE)
    return found and found[1].decode()


class Sink:
    """Answers after a random time up to `slowest` seconds."""

    def __init__(self, slowest=0, keep=False):
        self.recipients, self.times, self.slowest = collections.Counter(), [], slowest
        self.keep, self.mails = keep, []
        # Whether to close the connection instead of answering the next mail.
        self.drop_next = False
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
        sender = recipient = None
        while line := await reader.readline():
            command = line[:4].upper()
            if command == b"MAIL":
                sender = re.search(rb"<([^>]*)>", line)[1].decode()
            if command == b"RCPT":
                recipient = re.search(rb"<([^>]*)>", line)[1].decode().lower()
            if command == b"DATA":
                writer.write(b"354 go on\r\n")
                mail = await reader.readuntil(b"\r\n.\r\n")
                with self.arrived:
                    self.contents[_message_id(mail)].add(hashlib.sha256(mail).digest())
                    if self.keep:
                        content = mail[:-3].replace(b"\r\n..", b"\r\n.")
                        self.mails.append(Mail(sender, recipient, email.message_from_bytes(content, policy=email.policy.default)))
                    self.recipients[recipient] += 1
                    self.times.append(time.monotonic())
                    self.arrived.notify_all()
                if self.drop_next:
                    self.drop_next = False
                    return
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
