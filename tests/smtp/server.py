"""A real mail server for the tests, which fails in the ways that a test commands.

One process runs any number of servers, each on a free port of its own. Each line on standard input is a
JSON array of the id of a server and the words of a command; `[id, "open", {options}]` starts a server.
Each line on standard output is a JSON array of the id of a server and an event: `{"done": words}` answers a
command, `{"port": number}` an `open`, and `{"mail": …}` is a mail that the server accepted. The process
ends when standard input does.
"""

import asyncio
import base64
import email
import email.policy
import json
import logging
import socket
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


def parse(content):
    """A mail as it arrived, and as a mail client shows it."""
    source = content.decode("ascii")
    mail = email.message_from_bytes(content, policy=email.policy.default)

    def addresses(name):
        headers = mail.get_all(name, [])
        return [address.addr_spec for header in headers for address in header.addresses]

    def body(kind):
        part = mail.get_body((kind,))
        return part.get_content().replace("\r\n", "\n") if part else ""

    def part(part):
        content = b"" if part.is_multipart() else part.get_payload(decode=True)
        return {
            "kind": part.get_content_type(),
            "id": part["content-id"] and str(part["content-id"]),
            "disposition": part.get_content_disposition(),
            "file_name": part.get_filename(),
            "content": base64.b64encode(content).decode("ascii"),
        }

    return {
        "source": source,
        "headers": [[name, str(value)] for name, value in mail.items()],
        "to": addresses("to"),
        "reply_to": addresses("reply-to"),
        "text": body("plain"),
        "html": body("html"),
        "parts": [part(inner) for inner in mail.walk()],
        "defects": [str(defect) for defect in mail.defects],
    }


# The stages of a session at which a server can misbehave, by command. The others are `greeting`, `data`, `content` and `answer`.
STAGES = {"EHLO": "hello", "STARTTLS": "starttls", "MAIL": "sender", "RCPT": "recipient"}
LONG_LINE = 1 << 20


class Behaviour:
    """How a server answers. `accept` takes every other command back."""

    def __init__(self, emit):
        self.emit = emit
        self.silence_ended = asyncio.Event()
        self.accept()

    def accept(self):
        # Connections that got no reply are closed.
        self.silence_ended.set()
        self.silence_ended = asyncio.Event()
        self.replies = {}
        self.rejected = {}
        self.dropped_stage = None
        self.silent_stage = None
        self.delay = 0
        self.poison = None
        self.injected = ""
        self.resumed = asyncio.Event()
        self.resumed.set()

    def command(self, words):
        match words:
            case ["accept"]:
                self.accept()
            case ["reply", stage, *reply]:
                self.replies = {stage: " ".join(reply)}
            case ["reject", word, *reply]:
                self.rejected[word] = " ".join(reply)
            case ["long-reply", stage, code]:
                self.replies = {stage: f"{code} ".ljust(LONG_LINE, "x")}
            case ["drop", stage]:
                self.dropped_stage = stage
            case ["silent", stage]:
                self.silent_stage = stage
            case ["slow", seconds]:
                self.delay = float(seconds)
            case ["poison", word, *reply]:
                self.poison = word.encode(), " ".join(reply) or "554 5.7.1 that is not a mail for me"
            case ["inject", *codes]:
                self.injected = "".join(f"{code} injected\r\n" for code in codes)
            case ["hold"]:
                self.resumed = asyncio.Event()
            case ["resume"]:
                self.resumed.set()
            case ["report"]:
                pass
            case _:
                raise ValueError(words)

    async def handle_RCPT(self, server, session, envelope, address, options):
        for word, reply in self.rejected.items():
            if word in address:
                return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if not self.resumed.is_set():
            self.emit(held=True)
            await self.resumed.wait()
        if "content" in self.replies:
            self.emit(refused=True)
            return self.replies["content"]
        if self.poison and self.poison[0] in envelope.original_content:
            self.emit(refused=True)
            if self.poison[1] == "drop":
                server.transport.abort()
            return self.poison[1]
        self.emit(
            mail={
                "sender": envelope.mail_from,
                "recipients": envelope.rcpt_tos,
                "encrypted": server.transport.get_extra_info("ssl_object") is not None,
                "user": session.auth_data.login.decode() if session.authenticated else None,
                **parse(envelope.original_content),
            }
        )
        is_answered = "answer" not in (self.silent_stage, self.dropped_stage)
        if self.silent_stage == "answer":
            await self.silence_ended.wait()
        if not is_answered:
            server.transport.abort()
        return "250 OK"


def unless_faulty(command, stage):
    """A command that the server carries out, unless it was told to misbehave there."""

    async def method(self, arg):
        if not await self.misbehaves(stage):
            await getattr(SMTP, f"smtp_{command}")(self, arg)

    return method


class Connection(SMTP):
    """Misbehaves before it answers a command, or in the middle of a mail, if that was commanded."""

    def __init__(self, server, **options):
        super().__init__(server.behaviour, **options)
        self.open_connections = server.connections

    def connection_made(self, transport):
        super().connection_made(transport)
        self.open_connections.add(self)

    def connection_lost(self, error):
        self.open_connections.discard(self)
        super().connection_lost(error)

    async def push(self, status):
        await asyncio.sleep(self.event_handler.delay)
        if self.event_handler.injected and status.startswith("220 Ready"):
            # In one segment with the reply to STARTTLS, and unencrypted, as somebody on the path can send it.
            status = f"{status}\r\n{self.event_handler.injected}".removesuffix("\r\n")
        await super().push(status)

    async def _handle_client(self):
        if await self.misbehaves("greeting"):
            self.transport.close()
        else:
            await super()._handle_client()

    async def misbehaves(self, stage):
        """Does what was commanded for this stage, if anything was, and returns whether."""
        behaviour = self.event_handler
        if stage in behaviour.replies:
            behaviour.emit(faulty=stage)
            await self.push(behaviour.replies[stage])
        elif stage == behaviour.silent_stage:
            behaviour.emit(faulty=stage)
            try:
                await behaviour.silence_ended.wait()
            except asyncio.CancelledError:
                behaviour.emit(gave_up=stage)
                raise
            self.transport.abort()
        elif stage == behaviour.dropped_stage:
            behaviour.emit(faulty=stage)
            self.transport.abort()
        else:
            return False
        return True

    async def smtp_DATA(self, arg):
        if await self.misbehaves("data"):
            return
        if self.event_handler.dropped_stage == "content" and self.envelope.rcpt_tos:
            await self.push("354 go on")
            await self._reader.readline()
            self.event_handler.emit(dropped=True)
            self.transport.abort()
        else:
            await super().smtp_DATA(arg)


for command, stage in STAGES.items():
    setattr(Connection, f"smtp_{command}", unless_faulty(command, stage))


class Server:
    """One listener with a behaviour of its own."""

    def __init__(self, emit, certificate=None, key=None, starttls=None, user=None, password=None):
        self.emit = emit
        self.behaviour = Behaviour(emit)
        self.connections = set()
        self.starttls = starttls
        self.login = (user, password) if user else None
        self.tls = None
        if certificate:
            self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.tls.load_cert_chain(certificate, key)

    async def listen(self, port=0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        implicit_tls = None if self.starttls else self.tls
        self.listener = await asyncio.get_running_loop().create_server(self.connection, sock=listener, ssl=implicit_tls)

    def connection(self):
        return Connection(
            self,
            hostname="relay.test",
            enable_SMTPUTF8=False,
            tls_context=self.tls if self.starttls else None,
            require_starttls=self.starttls == "required",
            auth_required=self.login is not None,
            auth_require_tls=self.starttls is not None,
            authenticator=self.authenticate,
            loop=asyncio.get_running_loop(),
        )

    def authenticate(self, server, session, envelope, mechanism, data):
        success = (data.login.decode(), data.password.decode()) == self.login
        # aiosmtpd answers 535 only to what is not handled yet.
        return AuthResult(success=success, handled=success, auth_data=data)

    async def command(self, words):
        match words:
            case "stop-listening":
                self.listener.close()
            case "listen-again":
                await self.listen(self.port)
            case "close":
                self.listener.close()
                for connection in list(self.connections):
                    connection.transport.abort()
            case _:
                self.behaviour.command(words.split())


async def run():
    # It warns of the rest of a mail in which a connection was dropped.
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    servers = {}
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        number, words, *options = json.loads(line)

        def emit(number=number, **event):
            print(json.dumps([number, event]), flush=True)

        if words == "open":
            servers[number] = Server(emit, **options[0])
            await servers[number].listen()
            emit(port=servers[number].port)
        else:
            await servers[number].command(words)
            emit(done=words)
        if words == "close":
            del servers[number]


asyncio.run(run())
