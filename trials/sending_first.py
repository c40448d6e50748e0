"""A stand-in for a service that sends a message to the mail server before it answers. The controls of trials use it."""

import email.message
import http.server
import json
import smtplib
import threading


class SendingFirst:
    """Answers a POST with 200 once the mail server has taken the message, else with 503, until the end of a `with` block."""

    def __init__(self, relay_port, sender, recipient):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                mail = email.message.EmailMessage()
                mail["From"], mail["To"] = sender, recipient
                mail.set_content(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["message"])
                try:
                    with smtplib.SMTP("127.0.0.1", relay_port, timeout=30) as relay:
                        relay.send_message(mail)
                    status = 200
                except (OSError, smtplib.SMTPException):
                    status = 503
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
