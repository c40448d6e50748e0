"""A stand-in for a service that acknowledges before it stores. The controls of trials use it."""

import http.server
import queue
import threading

from load import Connection


class EarlyAnswers:
    """Answers every POST with 200, and then forwards it to a service, one after another. Runs until the end of a `with` block."""

    def __init__(self, service):
        self.waiting = queue.SimpleQueue()
        waiting = self.waiting

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                waiting.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port, self.service = self.server.server_address[1], service
        for work in (self.server.serve_forever, self._forward):
            threading.Thread(target=work, daemon=True).start()

    def _forward(self):
        connection = Connection(self.service)
        while request := self.waiting.get():
            connection.post_bytes(*request)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.waiting.put(None)
        self.server.shutdown()
        self.server.server_close()
