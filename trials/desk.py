"""A maker at the desk, on the ops listener of an instance: signs in, and has the service send a letter."""

import re
import urllib.parse

from instance import request
from service import expect

BOUNDARY = "field"


class Desk:
    """A session, which all instances on the same database know."""

    def __init__(self, site, program, instance):
        self.secret = ""
        link = site.command(program, "desk", "--ops-listen", f"127.0.0.1:{instance.ops_port}")
        answer = self._post(instance, urllib.parse.urlsplit(link.strip()).path)
        self.secret = re.search(r"=([0-9a-f]{64});", answer.headers["set-cookie"])[1]

    def _request(self, instance, method, path, body=None, **headers):
        host, cookie = f"127.0.0.1:{instance.ops_port}", f"porchlight-desk-{instance.ops_port}={self.secret}"
        return request(instance.ops_port, method, path, body, Host=host, Origin=f"http://{host}", Cookie=cookie, **headers)

    def _post(self, instance, path, **fields):
        """Sends a form. Any answer but one that leads to a page is a finding."""
        parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
        body = "".join([*parts, f"--{BOUNDARY}--\r\n"])
        answer = self._request(instance, "POST", path, body, **{"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
        expect(answer.status == 303, f"{instance.name}: POST {path}: {answer}")
        return answer

    def send(self, instance, subject, body):
        """Writes a letter and has the service send it. Returns the path of its page."""
        draft = self._post(instance, "/desk/letters/new").headers["location"]
        self._post(instance, draft, subject=subject, body=body, then="send")
        question = self._request(instance, "GET", f"{draft}/send").body.decode()
        letter = re.search('name="letter" value="([^"]*)"', question)
        expect(letter, f"{instance.name}: the question has no button: {question}")
        return self._post(instance, f"{draft}/send", letter=letter[1]).headers["location"]

    def text(self, instance, path):
        """The text of a page."""
        answer = self._request(instance, "GET", path)
        expect(answer.status == 200, f"{instance.name}: GET {path}: {answer}")
        return " ".join(re.sub(r"<[^>]*>", " ", answer.body.decode()).split())
