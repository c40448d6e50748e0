"""Checks of a service behind a proxy, from clients with public addresses. Each returns a sentence about what it saw."""

import collections
import http.client
import json
import socket
import threading
import time

from service import CurlFailed, curl, digest, expect, trusting, wait_until

HOST = "troupe.example"
FRONT, FRONT_6 = "198.51.100.1", "2001:db8:1::1"
ADA, BOB, EVE, ADA_6 = "203.0.113.7", "203.0.113.8", "203.0.113.9", "2001:db8:7::7"
CLOUDFLARE = "173.245.48.1"
ADDRESSES = [FRONT, FRONT_6, ADA, BOB, EVE, ADA_6, CLOUDFLARE]

VERSIONS = {"--http1.1": "1.1", "--http2": "2"}
PAGES = ["/", "/about", "/privacy", "/developers", "/contact", "/releases"]
LATEST, IMAGE = "/releases/latest/Troupe.dmg", "/releases/Troupe-1.4.0.dmg"
# Of contact messages a client may send this many at once, and then one in so many seconds.
AT_ONCE, SECONDS_PER_MESSAGE = 12, 10
LARGEST_BODY, LARGEST_DISCARDED = 64 * 1024, 1 << 20
# What curl says of a connection that is closed while it sends or before all has come.
CLOSED = (18, 52, 55, 56, 92)
# As a visitor with a slow line. The pieces are longer than the 30 seconds after which a reader of less than 1 KiB a second
# is given up on.
READ_SIZE, READ_PAUSE, READ_SECONDS = 2000, 0.1, 40


class Visit:
    """Requests to the site by curl."""

    def __init__(self, folder, root, direct="http://127.0.0.1:8080"):
        self.folder, self.root, self.direct = folder, root, direct

    def ask(self, path, *arguments, source=EVE):
        front = f"[{FRONT_6}]" if ":" in source else FRONT
        return curl(self.folder, "--cacert", self.root, "--resolve", f"{HOST}:443:{front}", "--interface", source, *arguments,
                    f"https://{HOST}{path}")

    def post(self, path, value, *arguments, source=EVE):
        body = self.folder / "curl.sent"
        body.write_text(value if isinstance(value, str) else json.dumps(value))
        return self.ask(path, "--header", "content-type: application/json", "--data-binary", f"@{body}", *arguments,
                        source=source)

    def message(self, source, *arguments):
        return self.post("/api/contact", {"email": "ada@example.com", "message": f"It is {time.monotonic_ns()}."}, *arguments,
                         source=source)


def pages(visit):
    """HTML and Markdown by both versions, the same as without the proxy, also compressed."""
    for path in PAGES:
        for kind in ("text/html", "text/markdown"):
            for coding in ("identity", "br"):
                wanted = ["--header", f"accept: {kind}", "--header", f"accept-encoding: {coding}"]
                direct = curl(visit.folder, *wanted, visit.direct + path) if visit.direct else None
                for flag, version in VERSIONS.items():
                    answer = visit.ask(path, flag, *wanted)
                    what = f"{path} as {kind}, {coding}, over HTTP/{version}"
                    expect((answer.status, answer.version) == (200, version), f"{what}: {answer}")
                    expect(answer.headers["content-type"].startswith(kind), f"{what}: {answer}")
                    expect(answer.headers.get("content-encoding", "identity") == coding, f"{what}: {answer}")
                    expect("strict-transport-security" in answer.headers, f"{what} has no HSTS: {answer}")
                    direct = direct or answer
                    expect(answer.body == direct.body, f"{what} is not the page that the service gives")
                    head = visit.ask(path, flag, *wanted, "--head")
                    length = len(answer.body)
                    expect(head.headers.get("content-length", str(length)) == str(length), f"HEAD {what}: {head}")
    return f"{len(PAGES)} pages as HTML and Markdown, GET and HEAD, over HTTP/1.1 and HTTP/2"


def orders(visit):
    """Downloads as JSON and as a form, and a tool call with the origin of the site."""
    for flag, version in VERSIONS.items():
        answer = visit.post("/api/download", {"email": f"ada{version}@example.com"}, flag)
        expect(answer.status == 200, f"POST /api/download over HTTP/{version}: {answer}")
        expect(json.loads(answer.body)["url"] == f"https://{HOST}{LATEST}", f"POST /api/download: {answer}")
        answer = visit.ask("/download", flag, "--header", f"origin: https://{HOST}", "--data", "email=bob@example.com")
        expect(answer.status == 303, f"POST /download over HTTP/{version}: {answer}")
        expect(answer.headers["location"].endswith("/download/started"), f"POST /download: {answer}")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "about_service", "arguments": {}}}
        answer = visit.post("/mcp", call, flag, "--header", f"origin: https://{HOST}", "--header",
                            "accept: application/json, text/event-stream", "--header", "mcp-protocol-version: 2025-11-25")
        expect(answer.status == 200 and b'"result"' in answer.body, f"POST /mcp over HTTP/{version}: {answer}")
    return "downloads by API and form, and a tool call"


def images(visit, image):
    for flag, version in VERSIONS.items():
        latest = visit.ask(LATEST, flag)
        expect(latest.headers.get("location") == IMAGE, f"{LATEST} over HTTP/{version}: {latest}")
        answer = visit.ask(IMAGE, flag)
        expect(answer.status == 200 and digest(answer.body) == digest(image), f"the image over HTTP/{version}: {answer}")
        part = visit.ask(IMAGE, flag, "--range", "1000-70999")
        expect(part.status == 206 and part.body == image[1000:71000], f"a range over HTTP/{version}: {part}")
        expect(part.headers["content-range"] == f"bytes 1000-70999/{len(image)}", f"a range: {part}")
        head = visit.ask(IMAGE, flag, "--head")
        expect(head.headers.get("content-length") == str(len(image)), f"HEAD over HTTP/{version}: {head}")
        known = visit.ask(IMAGE, flag, "--header", f"if-none-match: {answer.headers['etag']}")
        expect(known.status == 304, f"If-None-Match over HTTP/{version}: {known}")
    return "a disk image, a range of it, HEAD and If-None-Match"


def uploads(visit):
    """The largest body that is allowed is stored, and a larger one is refused. One that is much larger is answered before it
    was read. Caddy then gives up the connection while it passes the answer on, which may be cut or become a 502."""
    seen = []
    for number, (flag, version) in enumerate(VERSIONS.items()):
        order = json.dumps({"email": f"large{number}@example.com"})
        answer = visit.post("/api/download", order.ljust(LARGEST_BODY), flag)
        expect(answer.status == 200, f"64 KiB over HTTP/{version}: {answer}")
        # Without waiting for `100 Continue`, as browsers do.
        send = lambda size: visit.post("/api/download", order.ljust(size), flag, "--header", "expect:")
        answer = send(LARGEST_DISCARDED)
        expect(answer.status in (400, 413), f"1 MiB over HTTP/{version}: {answer}")
        try:
            answer = send(20 << 20)
            expect(answer.status in (400, 413, 502), f"20 MiB over HTTP/{version}: {answer}")
            seen.append(str(answer.status))
        except CurlFailed as failure:
            expect(failure.code in CLOSED, f"20 MiB over HTTP/{version}: {failure}")
            seen.append("closed")
    return f"64 KiB are taken, 1 MiB is refused, and 20 MiB ({', '.join(seen)})"


def releases(visit, token):
    """A disk image of 16 MiB is published through the proxy by a token, over both versions, and not without one. Caddy may cut
    the answer to a request whose body was not read."""
    image, versions = visit.folder / "image.dmg", []
    for version, flag in zip(("2.0.0", "2.1.0"), VERSIONS, strict=True):
        upload = lambda *more: visit.ask(f"/desk/releases/{version}?channel=beta", flag, "--upload-file", image, *more)
        try:
            answer = upload()
            expect(answer.status in (401, 502), f"{version} without a token: {answer}")
        except CurlFailed as failure:
            expect(failure.code in CLOSED, f"{version} without a token: {failure}")
        answer = upload("--header", f"authorization: Bearer {token}")
        expect(answer.status == 201, f"{version} over HTTP/{VERSIONS[flag]}: {answer}")
        versions.append(version)
    return f"{' and '.join(versions)} are published with a token, and not without one"


def desk(visit, sign_in_link):
    """A maker signs in and searches, over both versions; a page of another origin changes nothing."""
    for flag, version in VERSIONS.items():
        path, cookies = sign_in_link().removeprefix(f"https://{HOST}"), visit.folder / f"cookies-{version}"
        own, session = ("--header", f"origin: https://{HOST}"), ("--cookie", cookies)
        answer = visit.ask(path, flag, "--data", "", "--cookie-jar", cookies, *own)
        expect(answer.status == 303 and "__Host-" in cookies.read_text(), f"signing in over HTTP/{version}: {answer}")
        answer = visit.ask("/desk/inbox", flag, *session)
        expect(answer.status == 200 and b"<h1>Inbox</h1>" in answer.body, f"the inbox over HTTP/{version}: {answer}")
        search = ("--data", "search=ada", *session)
        answer = visit.ask("/desk/people", flag, *search, *own)
        expect(answer.status == 200 and b"ada" in answer.body, f"a search over HTTP/{version}: {answer}")
        answer = visit.ask("/desk/people", flag, *search, "--header", "origin: https://evil.example")
        expect(answer.status == 403, f"a search from another origin over HTTP/{version}: {answer}")
    return "a maker signs in at the desk, and searches"


FORGED = ["192.0.2.{}", "127.0.0.1", "unknown", "192.0.2.{}, 127.0.0.1", "192.0.2.{}, nonsense", "[2001:db8:{}::1]:443"]


def forged(number):
    address = FORGED[number % len(FORGED)].format(number)
    headers = [f"x-forwarded-for: {address}", f"forwarded: for={address}", f"x-real-ip: {address}",
               f"cf-connecting-ip: {address}"]
    return [part for header in headers for part in ("--header", header)]


def exceed(send, who):
    """Sends more messages than a client may at once; returns after the limit has held."""
    began, answers = time.monotonic(), [send(number) for number in range(AT_ONCE + 6)]
    counts = collections.Counter(answer.status for answer in answers)
    renewed = int((time.monotonic() - began) // SECONDS_PER_MESSAGE)
    expect(AT_ONCE <= counts[200] <= AT_ONCE + renewed, f"{who}: {counts[200]} of {len(answers)} messages at once are taken")
    for answer in answers:
        expect(answer.status in (200, 503), f"{who}: {answer}")
        if answer.status == 503:
            expect(1 <= int(answer.headers.get("retry-after", 0)) <= SECONDS_PER_MESSAGE, f"Retry-After: {answer}")


def clients(visit):
    """A client is who the proxy saw, whatever it claims; others are not affected."""
    exceed(lambda number: visit.message(ADA, *forged(number)), "one client with forged headers")
    for other in (BOB, ADA_6):
        answer = visit.message(other)
        expect(answer.status == 200, f"another client is refused, too: {answer.status}")
    return f"after {AT_ONCE} messages a client is refused, whatever it forges, and others are served"


def cloudflare(visit, source):
    """The same by the headers that Cloudflare sends: it replaces CF-Connecting-IP and appends to X-Forwarded-For."""
    def message(visitor, claimed):
        return visit.message(source, "--header", f"cf-connecting-ip: {visitor}",
                             "--header", f"x-forwarded-for: {claimed}{visitor}")
    exceed(lambda number: message("198.18.0.1", f"192.0.2.{number}, "), "one visitor")
    answer = message("198.18.0.2", "")
    expect(answer.status == 200, f"another visitor is refused, too: {answer.status}")
    return "visitors that an imitated Cloudflare names are told apart"


def unlimited(visit):
    answers = [visit.message(ADA) for _ in range(2 * AT_ONCE)]
    expect(all(answer.status == 200 for answer in answers), f"not all are served: {[answer.status for answer in answers]}")
    return "no client is limited"


def connect(root, source, timeout=30):
    """A connection by TLS, of a client that has an ordinary network in between: not the large segments of loopback."""
    plain = socket.socket()
    plain.settimeout(timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    plain.bind((source, 0))
    plain.connect((FRONT, 443))
    return trusting(root).wrap_socket(plain, server_hostname=HOST)


def read_slowly(root, image):
    """A download at 20 KB a second goes on, and what has come at the end is right."""
    with connect(root, BOB) as connection:
        connection.sendall(f"GET {IMAGE} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n".encode())
        received, began = bytearray(), time.monotonic()
        while time.monotonic() - began < READ_SECONDS:
            piece = connection.recv(READ_SIZE)
            expect(piece, f"a slow download is cut after {time.monotonic() - began:.0f} s and {len(received):,} bytes")
            received += piece
            time.sleep(READ_PAUSE)
        slowly = len(received)
        while piece := connection.recv(1 << 16):
            received += piece
    body = bytes(received).partition(b"\r\n\r\n")[2]
    expect(digest(body) == digest(image), f"a slow download has {len(body):,} of {len(image):,} bytes")
    return f"a download that took {slowly:,} bytes in its first {READ_SECONDS} s is complete"


def write_slowly(root):
    """A request whose body takes some seconds to arrive is answered."""
    body = json.dumps({"email": "slow@example.com"}).encode()
    with connect(root, BOB) as connection:
        connection.sendall(f"POST /api/download HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
                           f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode())
        for byte in body:
            connection.sendall(bytes([byte]))
            time.sleep(0.2)
        answer = connection.recv(1 << 16)
    expect(answer.startswith(b"HTTP/1.1 200"), f"a request sent slowly: {answer[:200]}")
    return f"a request whose body takes {len(body) * 0.2:.0f} s is taken"


class Visits:
    """A visitor who requests without end while the service restarts."""

    def __init__(self, root):
        self.root, self.results, self.ended = root, [], threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.stopped = self.ready = None

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.ended.set()
        self.thread.join()

    def _run(self):
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                status = self._request(len(self.results))
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
            self.results.append((began, time.monotonic(), status))

    def _request(self, number):
        with connect(self.root, BOB) as connection:
            if number % 2:
                head, body = "GET /about", b""
            else:
                head, body = "POST /api/download", json.dumps({"email": f"visit{number}@example.com"}).encode()
            connection.sendall(f"{head} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
                               f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            answer.read()
            return answer.status

    def wait_for(self, what, matches, count=20):
        since = time.monotonic()
        wait_until(what, lambda: sum(1 for began, _, status in self.results if began > since and matches(status)) >= count)

    def judge(self):
        failed = [(began, ended, status) for began, ended, status in self.results if status != 200]
        for began, ended, status in failed:
            expect(ended >= self.stopped and began <= self.ready, f"{status} {began - self.stopped:.2f} s after the service was "
                   f"stopped, though it was back after {self.ready - self.stopped:.2f} s")
        statuses = ", ".join(sorted({str(status) for _, _, status in failed}))
        return f"a restart: {len(failed)} of {len(self.results)} requests fail, while it is away ({statuses})"
