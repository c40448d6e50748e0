"""A real mail server for the tests, which behaves as badly as it is told to.

It listens on a free port of this machine and says so in its first line. Each line on standard
input is an order, answered with {"done": order}; each mail that it took is a line of JSON on
standard output. It ends when standard input does.
"""

import argparse
import asyncio
import email
import email.policy
import json
import socket
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


def say(**event):
    print(json.dumps(event), flush=True)


def read(content):
    """A mail as a mail reader sees it."""
    content.decode("ascii")
    mail = email.message_from_bytes(content, policy=email.policy.default)

    def addresses(name):
        headers = mail.get_all(name, [])
        return [address.addr_spec for header in headers for address in header.addresses]

    def body(kind):
        part = mail.get_body((kind,))
        return part.get_content().replace("\r\n", "\n") if part else ""

    return {
        "head": [[name, str(value)] for name, value in mail.items()],
        "to": addresses("to"),
        "reply_to": addresses("reply-to"),
        "text": body("plain"),
        "html": body("html"),
        "defects": [str(defect) for defect in mail.defects],
    }


class Behaviour:
    """How mail is received. Each order replaces the one before."""

    def __init__(self):
        self.replies = {}
        self.disliked = {}
        self.dropped = None
        self.poison = None
        self.go = asyncio.Event()
        self.go.set()

    def order(self, words):
        match words:
            case ["take"]:
                self.__init__()
            case ["reply", stage, *reply]:
                self.replies = {stage: " ".join(reply)}
            case ["dislike", word, *reply]:
                self.disliked[word] = " ".join(reply)
            case ["drop", stage]:
                self.dropped = stage
            case ["poison", word]:
                self.poison = word.encode()
            case ["hold"]:
                self.go = asyncio.Event()
            case ["go"]:
                self.go.set()
            case ["report"]:
                pass
            case _:
                raise ValueError(words)

    async def handle_MAIL(self, server, session, envelope, address, options):
        if "sender" in self.replies:
            return self.replies["sender"]
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if "recipient" in self.replies:
            return self.replies["recipient"]
        for word, reply in self.disliked.items():
            if word in address:
                return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if not self.go.is_set():
            say(held=True)
            await self.go.wait()
        if "content" in self.replies:
            say(refused=True)
            return self.replies["content"]
        if self.poison and self.poison in envelope.original_content:
            say(refused=True)
            return "554 5.7.1 that is not a mail for me"
        say(
            mail={
                "sender": envelope.mail_from,
                "recipients": envelope.rcpt_tos,
                "encrypted": server.transport.get_extra_info("ssl_object") is not None,
                "user": session.auth_data.login.decode() if session.authenticated else None,
                **read(envelope.original_content),
            }
        )
        if self.dropped == "answer":
            server.transport.abort()
        return "250 OK"


class Server(SMTP):
    """Drops the connection in the middle of a mail, if that is the order."""

    async def smtp_DATA(self, arg):
        if self.event_handler.dropped == "content" and self.envelope.rcpt_tos:
            await self.push("354 go on")
            await self._reader.readline()
            say(dropped=True)
            self.transport.abort()
        else:
            await super().smtp_DATA(arg)


async def serve(arguments):
    behaviour = Behaviour()
    loop = asyncio.get_running_loop()
    context = None
    if arguments.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(arguments.certificate, arguments.key)

    def authenticate(server, session, envelope, mechanism, data):
        login = (arguments.user, arguments.password)
        success = (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=success, auth_data=data)

    def conversation():
        return Server(
            behaviour,
            hostname="relay.test",
            enable_SMTPUTF8=False,
            tls_context=context if arguments.starttls else None,
            require_starttls=arguments.starttls == "required",
            auth_required=arguments.user is not None,
            auth_require_tls=arguments.starttls is not None,
            authenticator=authenticate,
            loop=loop,
        )

    def listen(port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        at_once = None if arguments.starttls else context
        return loop.create_server(conversation, sock=listener, ssl=at_once)

    server = await listen(0)
    port = server.sockets[0].getsockname()[1]
    say(port=port)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := (await orders.readline()).decode().strip():
        if line == "away":
            server.close()
        elif line == "back":
            server = await listen(port)
        else:
            behaviour.order(line.split())
        say(done=line)


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--starttls", choices=["offered", "required"])
parser.add_argument("--user")
parser.add_argument("--password")
asyncio.run(serve(parser.parse_args()))
