"""Clients that are slow on purpose. Each holds a connection as long as the server lets it."""

import socket
import ssl
import struct

import http2
from instance import HOST

BODY_LENGTH = 1000
GET = f"GET /about HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
IMAGE = f"GET /releases/Troupe-1.4.0.dmg HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
POST = (f"POST /api/waitlist HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {BODY_LENGTH}\r\n\r\n").encode()
PARTIAL_HEAD = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nX-Slow: ".encode()
H2_GET = http2.block("GET", "/about", HOST)
H2_IMAGE = http2.block("GET", "/releases/Troupe-1.4.0.dmg", HOST)
H2_POST = http2.block("POST", "/api/waitlist", HOST, content_type="application/json", content_length=str(BODY_LENGTH))
STREAMS = 10
# A small one, so that a slow reader stops the server soon.
RECEIVE_BUFFER = 4096

# Seconds until the server must have closed the connection: ten of silence and some for a busy machine.
SILENT = 15
# A request without its body is answered after ten seconds; then the connection is idle.
ANSWERED_FIRST = 25
# Whoever takes less than a kibibyte a second is given up on after thirty seconds.
READER = 50


def _h2(*frames, window=None):
    return http2.PREFACE + (http2.settings() if window is None else http2.settings(window=window)) + b"".join(frames)


def _streams(head):
    return [http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, head) for number in range(STREAMS)]


class Shape:
    """`transport` is plain, tls (connected, without a handshake), http/1.1 or h2. `first` is sent at once, `drip` every second."""

    def __init__(self, name, transport, first=b"", drip=b"", limit=SILENT, reads_first=False, read_bytes=0):
        self.name, self.transport, self.first, self.drip, self.limit = name, transport, first, drip, limit
        # Whether the client reads an answer before it becomes silent, and how much it reads every second.
        self.reads_first, self.read_bytes = reads_first, read_bytes

    def __str__(self):
        return f"{self.transport}: {self.name}"

    def open(self, ports, contexts):
        buffer = RECEIVE_BUFFER if self.limit == READER else None
        if self.transport in contexts:
            client = http2.connect(contexts[self.transport], ports["tls"], HOST, self.transport, receive_buffer=buffer)
        else:
            client = socket.socket()
            if buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.settimeout(15)
            client.connect(("127.0.0.1", ports[self.transport]))
        if self.first:
            client.sendall(self.first)
        if self.reads_first:
            client.recv(65536)
        client.setblocking(False)
        return client


def _client_hello():
    """The first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=HOST)
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


HELLO = _client_hello()

# What the ten thousand of a campaign do.
IDLE = [Shape("silent", "plain")] * 8 + [Shape("silent before the handshake", "tls")] * 8 + [
    Shape("idle after an answer", "plain", GET, reads_first=True)] * 3 + [
    Shape("idle after an answer", "http/1.1", GET, reads_first=True)]

HTTP1 = [
    Shape("one byte", "{}", b"G"),
    Shape("head drip", "{}", PARTIAL_HEAD, b"x"),
    Shape("body drip", "{}", POST, b" "),
    Shape("no body", "{}", POST),
    Shape("idle after an answer", "{}", GET, reads_first=True),
    Shape("reads nothing", "{}", IMAGE, limit=READER),
    Shape("reads 100 bytes a second", "{}", IMAGE, limit=READER, read_bytes=100),
]


def _over(transport):
    return [Shape(one.name, transport, one.first, one.drip, one.limit, one.reads_first, one.read_bytes) for one in HTTP1]


PLAIN = _over("plain") + [Shape("part of the preface of HTTP/2", "plain", http2.PREFACE[:10])]
SLOW = PLAIN + _over("http/1.1") + [
    Shape("silent after the handshake", "http/1.1"),
    Shape("one byte of the handshake", "tls", HELLO[:1]),
    Shape("handshake drip", "tls", HELLO[:20], HELLO[20:21]),
    Shape("silent after the handshake", "h2"),
    Shape("part of the preface", "h2", http2.PREFACE[:10]),
    Shape("settings alone", "h2", _h2()),
    Shape("head drip", "h2", _h2(http2.frame(http2.HEADERS, 0, 1, H2_POST[:5])), http2.frame(http2.CONTINUATION, 0, 1, b"")),
    Shape("streams without bodies", "h2", _h2(*_streams(H2_POST)), limit=ANSWERED_FIRST),
    Shape("body drip", "h2", _h2(*_streams(H2_POST)), http2.frame(http2.DATA, 0, 1, b" "), limit=ANSWERED_FIRST),
    Shape("idle after an answer", "h2", _h2(http2.frame(http2.HEADERS, 5, 1, H2_GET)), reads_first=True),
    Shape("reads nothing", "h2", _h2(http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)),
                                     http2.frame(http2.HEADERS, 5, 1, H2_IMAGE), window=1 << 30), limit=READER),
    Shape("a window of no bytes", "h2", _h2(http2.frame(http2.HEADERS, 5, 1, H2_IMAGE), window=0), limit=READER),
]
