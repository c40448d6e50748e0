"""As much of HTTP/2 as the trials need: frames, and a client that sends one request after another."""

import json
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
# Indexed field `:status: 200` of the static table.
STATUS_200 = 0x88


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    identifiers = {"window": INITIAL_WINDOW_SIZE}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", identifiers[name], value) for name, value in values.items()))


def _string(text):
    data = text.encode()
    # Without Huffman coding. A length of 127 or more takes further bytes.
    rest = len(data) - 127
    length = bytes([len(data)]) if rest < 0 else b"\x7f" + _continued(rest)
    return length + data


def _continued(number):
    encoded = b""
    while number >= 128:
        encoded, number = encoded + bytes([number % 128 + 128]), number // 128
    return encoded + bytes([number])


def block(method, path, authority, **headers):
    """The headers of a request, as literals that no table keeps."""
    fields = {":method": method, ":scheme": "https", ":path": path, ":authority": authority,
              **{name.replace("_", "-"): value for name, value in headers.items()}}
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in fields.items())


class Refused(Exception):
    """The server did not handle the request, and says so: it may be sent again on another connection."""


class Connection:
    """A client on a TLS socket. After GOAWAY `is_open` is false, and another connection is needed."""

    def __init__(self, tls, authority):
        self.tls, self.authority, self.stream, self.is_open = tls, authority, -1, True
        self.last_handled = 2 ** 31 - 1
        tls.sendall(PREFACE + settings())

    def request(self, method, path, members=None):
        """Returns whether the status is 200, and the length of the body."""
        self.stream += 2
        body = json.dumps(members).encode() if members is not None else b""
        extra = {"content_type": "application/json", "content_length": str(len(body))} if body else {}
        head = block(method, path, self.authority, **extra)
        try:
            self.tls.sendall(frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), self.stream, head)
                             + (frame(DATA, END_STREAM, self.stream, body) if body else b""))
        except OSError:
            pass  # a GOAWAY that tells why may be there to read
        return self._answer()

    def _answer(self):
        is_ok, length = False, 0
        while True:
            kind, flags, stream, payload = self._frame()
            if kind == SETTINGS and not flags & ACK:
                self.tls.sendall(frame(SETTINGS, ACK))
            elif kind == PING and not flags & ACK:
                self.tls.sendall(frame(PING, ACK, 0, payload))
            elif kind == GOAWAY:
                self.is_open, self.last_handled = False, struct.unpack(">I", payload[:4])[0]
                if self.stream > self.last_handled:
                    raise Refused()
            elif stream == self.stream and kind == RST_STREAM:
                if struct.unpack(">I", payload)[0] == 7:  # REFUSED_STREAM
                    raise Refused()
                raise ConnectionError(f"the stream was reset: {payload.hex()}")
            elif stream == self.stream and kind == HEADERS:
                is_ok = bool(payload) and payload[0] == STATUS_200
            elif stream == self.stream and kind == DATA:
                length += len(payload)
                if payload and not flags & END_STREAM:
                    update = struct.pack(">I", len(payload))
                    self.tls.sendall(frame(WINDOW_UPDATE, 0, 0, update) + frame(WINDOW_UPDATE, 0, stream, update))
                elif payload:
                    self.tls.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
            if stream == self.stream and kind in (HEADERS, DATA) and flags & END_STREAM:
                return is_ok, length

    def _frame(self):
        head = self._read(9)
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        return kind, flags, stream & 0x7FFFFFFF, self._read(int.from_bytes(head[:3], "big"))

    def _read(self, length):
        data = b""
        while len(data) < length:
            part = self.tls.recv(length - len(data))
            if not part:
                raise ConnectionError("the connection was closed")
            data += part
        return data

    def close(self):
        self.tls.close()


def contexts(root):
    """One context for each protocol that is negotiated by TLS."""
    made = {}
    for protocol in ("http/1.1", "h2"):
        made[protocol] = ssl.create_default_context(cafile=root)
        made[protocol].set_alpn_protocols([protocol])
    return made


def connect(context, port, host, protocol="h2", timeout=15, receive_buffer=None):
    """A TLS socket to a port of this machine. `context` offers the protocols."""
    plain = socket.socket()
    plain.settimeout(timeout)
    if receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.connect(("127.0.0.1", port))
        tls = context.wrap_socket(plain, server_hostname=host)
        if tls.selected_alpn_protocol() != protocol:
            raise ConnectionError(f"{tls.selected_alpn_protocol()} was negotiated, not {protocol}")
        return tls
    except BaseException:
        plain.close()
        raise
