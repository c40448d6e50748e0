"""A real S3-compatible service for the tests, which fails in the ways that a test commands.

Moto keeps the objects. Every request is checked before: its signature by botocore, which is Amazon's own
implementation, and its body against the checksums in its headers. Times are not checked, since tests run at a
time of their own.

The first line on standard output is the port. Each line on standard input is a JSON array of the name of a
bucket and a command, and is answered by one line. `tls:CERTIFICATE:KEY` opens a port with TLS. The process ends when standard input does.
"""

import base64
import hashlib
import io
import json
import logging
import sys
import threading

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from urllib.parse import parse_qsl, urlencode
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

KEY = Credentials("key-of-the-tests", "secret-of-the-tests")
TOKEN = "token-of-the-tests"


class Refused(Exception):
    """An error as S3 answers it."""

    def __init__(self, status, code):
        self.response = Response(f"<Error><Code>{code}</Code></Error>", status, content_type="application/xml")


def check_signature(environ):
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }
    query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    if "X-Amz-Signature" in query:
        signature = query.pop("X-Amz-Signature")
        credential, names = query["X-Amz-Credential"], query["X-Amz-SignedHeaders"]
        time, token = query["X-Amz-Date"], query.get("X-Amz-Security-Token")
    else:
        if "authorization" not in headers:
            raise Refused(403, "AccessDenied")
        fields = headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(",")
        fields = dict(field.strip().split("=", 1) for field in fields)
        signature, credential, names = fields["Signature"], fields["Credential"], fields["SignedHeaders"]
        time, token = headers["x-amz-date"], headers.get("x-amz-security-token")
        unsigned = [name for name in headers if name.startswith("x-amz-") and name not in names.split(";")]
        if unsigned:
            raise Refused(403, "AccessDenied")
    key, day, region, service, _ = credential.split("/")
    if key != KEY.access_key:
        raise Refused(403, "InvalidAccessKeyId")
    if token not in (None, TOKEN):
        raise Refused(400, "InvalidToken")
    url = f"{environ['wsgi.url_scheme']}://{headers['host']}{environ['RAW_URI'].split('?')[0]}"
    signed = {name: value for name, value in headers.items() if name in names.split(";")}
    if environ["QUERY_STRING"]:
        signer = S3SigV4QueryAuth(KEY, service, region)
        request = AWSRequest(environ["REQUEST_METHOD"], f"{url}?{urlencode(query)}", signed)
    else:
        signer = S3SigV4Auth(KEY, service, region)
        request = AWSRequest(environ["REQUEST_METHOD"], url, signed)
    request.context["timestamp"] = time
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if not time.startswith(day) or signer.signature(text, request) != signature:
        raise Refused(403, "SignatureDoesNotMatch")


def check_body(environ, body):
    digest = hashlib.sha256(body)
    if environ.get("HTTP_X_AMZ_CONTENT_SHA256", digest.hexdigest()) != digest.hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    checksum = base64.b64encode(digest.digest()).decode()
    if environ.get("HTTP_X_AMZ_CHECKSUM_SHA256", checksum) != checksum:
        raise Refused(400, "BadDigest")


class Service:
    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        # Moto loads most of itself with its first request, which may take longer than the service that is tested waits.
        first = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"}
        Response.from_app(self.moto, EnvironBuilder(headers=first).get_environ())
        self.backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        # How a bucket behaves, if not as it should.
        self.faults = {}
        self.changed = threading.Condition()

    def command(self, bucket, command):
        if command == "open":
            self.backend.create_bucket(bucket, "us-east-1")
        elif command.split(":")[0] in ("lose", "damage", "truncate", "forge"):
            how, _, part = command.partition(":")
            for name in [name for name in self.backend.buckets[bucket].keys if part in name]:
                self.spoil(bucket, name, how)
        elif command.startswith("swap:"):
            one, other = [name for name in self.backend.buckets[bucket].keys if command.removeprefix("swap:") in name]
            contents = [self.backend.get_object(bucket, name).value for name in (one, other)]
            self.replace(bucket, one, contents[1])
            self.replace(bucket, other, contents[0])
        elif command.startswith("take:"):
            _, source, part = command.split(":")
            [theirs], [ours] = ([name for name in self.backend.buckets[b].keys if part in name] for b in (source, bucket))
            self.replace(bucket, ours, self.backend.get_object(source, theirs).value)
        elif command.startswith("tls:"):
            return listen(self, tuple(command.split(":")[1:]))
        elif command.startswith("put:"):
            self.backend.put_object(bucket, command.removeprefix("put:"), b"")
        elif command.startswith("rename:"):
            _, old, new = command.split(":")
            for name in list(self.backend.buckets[bucket].keys):
                content = self.backend.get_object(bucket, name).value
                content = content if b"age-encryption" in content else content.replace(old.encode(), new.encode())
                self.backend.put_object(bucket, name.replace(old, new), content)
        elif command == "list":
            return sorted(self.backend.buckets[bucket].keys)
        elif command.startswith("find:"):
            text = command.removeprefix("find:").encode()
            keys = self.backend.buckets[bucket].keys
            return sorted(name for name in keys if text in self.backend.get_object(bucket, name).value)
        else:
            with self.changed:
                self.faults[bucket] = None if command == "work" else command
                self.changed.notify_all()
        return command

    def spoil(self, bucket, name, how):
        key = self.backend.get_object(bucket, name)
        if how == "lose":
            self.backend.delete_object(bucket, name)
            return
        if how == "forge":
            self.replace(bucket, name, key.value[:-20] + bytes([key.value[-20] ^ 1]) + key.value[-19:])
        else:
            self.put(bucket, name, key.value[:-1] if how == "truncate" else bytes(len(key.value)))

    def replace(self, bucket, name, content):
        """As somebody does who may write to the bucket: the name, and whatever names it, fit the content."""
        old, new = (hashlib.sha256(value).hexdigest() for value in (self.backend.get_object(bucket, name).value, content))
        key = name.split("/", 1)[1].encode()
        self.backend.delete_object(bucket, name)
        for other in list(self.backend.buckets[bucket].keys):
            value = self.backend.get_object(bucket, other).value
            if key in value:
                self.backend.put_object(bucket, other, value.replace(key, key.replace(old.encode(), new.encode())))
        self.put(bucket, name.replace(old, new), content)

    def put(self, bucket, name, content):
        checksum = base64.b64encode(hashlib.sha256(content).digest()).decode()
        stored = self.backend.put_object(bucket, name, content, checksum_value=checksum)
        stored.checksum_algorithm = "SHA256"

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        fault = self.fault(environ)
        with self.changed:
            self.changed.wait_for(lambda: self.fault(environ) != "hang")
        try:
            if fault == "away":
                environ["werkzeug.socket"].shutdown(2)
                return []
            if fault == "fail":
                raise Refused(503, "SlowDown")
            check_signature(environ)
            check_body(environ, body)
            if fault == "deny":
                raise Refused(403, "AccessDenied")
            if fault == "full" and environ["REQUEST_METHOD"] == "PUT":
                raise Refused(403, "QuotaExceeded")
            if fault == "keep" and environ["REQUEST_METHOD"] == "DELETE":
                raise Refused(403, "AccessDenied")
        except Refused as refused:
            return refused.response(environ, start_response)
        if fault in ("forget", "lie"):
            # As services do that know no checksums: `lie` even stores something else.
            for name in [name for name in environ if "CHECKSUM" in name]:
                del environ[name]
            body = bytes(len(body)) if fault == "lie" else body
        environ["wsgi.input"] = io.BytesIO(body)
        response = Response.from_app(self.moto, environ)
        if fault == "rot" and environ["REQUEST_METHOD"] == "GET" and "list-type" not in environ["QUERY_STRING"]:
            # What the service says of an object is not what it sends.
            response.set_data(bytes(len(response.get_data())))
        if fault == "cut" and environ["REQUEST_METHOD"] == "GET":
            response.response = self.half(environ, response.get_data())
        return response(environ, start_response)

    def fault(self, environ):
        """The fault of the bucket. One such as `hang:contents` is only that of objects with that part in their name."""
        bucket, _, name = environ["PATH_INFO"].removeprefix("/").partition("/")
        fault, _, part = (self.faults.get(bucket) or "").partition(":")
        return fault if part in name else None

    @staticmethod
    def half(environ, content):
        yield content[: len(content) // 2]
        environ["werkzeug.socket"].shutdown(2)


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def make_environ(self):
        environ = super().make_environ()
        environ["RAW_URI"] = self.path
        return environ


def listen(service, identity=None):
    server = make_server("127.0.0.1", 0, service, threaded=True, request_handler=Handler, ssl_context=identity)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.port


def main():
    logging.disable(logging.CRITICAL)
    service = Service()
    print(listen(service), flush=True)
    for line in sys.stdin:
        print(json.dumps(service.command(*json.loads(line))), flush=True)


main()
