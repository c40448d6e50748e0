"""What trials of a running service share: packages, certificates, processes, curl, and the verdict."""

import collections
import fcntl
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
REPOSITORY = FOLDER.parent
# Some of the programs are in folders that only root has in its path.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START_LIMIT = 60
EXIT_LIMIT = 15
# The services of packages that start one.
SERVICES = {"caddy": "caddy", "etcd-server": "etcd", "haproxy": "haproxy", "nginx-light": "nginx", "patroni": "patroni"}
# Headers that a finding mentions.
SHOWN = ["content-type", "content-encoding", "content-length", "content-range", "location", "retry-after"]


class Answer(collections.namedtuple("Answer", "status version headers body")):
    def __str__(self):
        headers = ", ".join(f"{name}: {self.headers[name]}" for name in SHOWN if name in self.headers)
        return f"{self.status} over HTTP/{self.version} ({headers}), {len(self.body)} bytes: {self.body[:200]}"


class Failed(Exception):
    """A finding: printed as its message, without a stack."""


class CurlFailed(Failed):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def expect(condition, finding):
    if not condition:
        raise Failed(finding)


def must_fail(because, check, *arguments):
    """Tries a check on something that is broken. It has to notice; returns the line that says so."""
    try:
        check(*arguments)
    except Failed as finding:
        lines = [line for line in str(finding).splitlines() if because in line]
        expect(lines, f"the check {check.__name__} fails, but does not say {because!r}:\n{finding}")
        return lines[0]
    raise Failed(f"the check {check.__name__} passes where it must not")


def wait_until(what, condition, limit=START_LIMIT, pause=0.05):
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {limit} s")
        time.sleep(pause)


def end_by_signal():
    """Lets SIGTERM end this process like an error does, so that it ends what it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def run(*command, **options):
    """Runs a program to its end and returns what it printed."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    expect(done.returncode == 0, f"{pathlib.Path(command[0]).name}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def as_root(*command):
    return run(*([] if os.geteuid() == 0 else ["sudo", "-n"]), *command)


def install(programs):
    """Installs the Debian packages of the programs that are missing ({program: package}), and stops what they start."""
    missing = sorted({package for program, package in programs.items() if not shutil.which(program, path=PATH)})
    if missing:
        # Trials may run side by side, and apt-get fails while another one runs.
        with open(__file__) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            as_root("apt-get", "update", "-qq")
            as_root("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
    # Only what was installed just now: a server that was there before may be in use.
    for service in (SERVICES[package] for package in missing if package in SERVICES):
        if pathlib.Path("/run/systemd/system").exists():
            as_root("systemctl", "disable", "--now", "--quiet", service)


def binary(arguments):
    """The program that is tried: the named one, else the debug build of this repository."""
    if arguments:
        return pathlib.Path(arguments[0]).resolve()
    program = REPOSITORY / "target/debug/porchlight"
    if not program.exists():
        subprocess.run(["cargo", "build", "--quiet"], cwd=REPOSITORY, check=True)
    return program


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def lasting_port():
    """A free port that no connection gets as its own while the service is away: below those that the system hands out."""
    while True:
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", random.randrange(20000, 32000)))
                return free.getsockname()[1]
            except OSError:
                pass


class Authority:
    """A root and an intermediate certificate, by which servers of a trial are trusted."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "root.pem"
        extensions = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        self._key("root", "Root of a trial", "-x509", "-days", "30", *extensions, result=self.root)
        self._key("issuer", "Issuer of a trial", *extensions, result=folder / "issuer.csr")
        self._sign("issuer", "root", 30)

    def _key(self, name, subject, *arguments, result, key="ec"):
        kind = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if key == "ec" else [key]
        run("openssl", "req", "-newkey", *kind, "-nodes", "-subj", f"/CN={subject}",
            "-keyout", self.folder / f"{name}.key", "-out", result, *arguments)

    def _sign(self, name, issuer, days):
        run("openssl", "x509", "-req", "-in", self.folder / f"{name}.csr", "-out", self.folder / f"{name}.pem", "-days", days,
            "-CA", self.folder / f"{issuer}.pem", "-CAkey", self.folder / f"{issuer}.key", "-CAcreateserial",
            "-copy_extensions", "copy")

    def issue(self, name, host, days=30, key="ec"):
        """Returns the files of a certificate with its issuer, and of its key. Negative days make one that has expired."""
        self._key(name, host, "-addext", f"subjectAltName=DNS:{host}", "-addext", "extendedKeyUsage=serverAuth",
                  result=self.folder / f"{name}.csr", key=key)
        self._sign(name, "issuer", days)
        chain = self.folder / f"{name}-chain.pem"
        chain.write_text((self.folder / f"{name}.pem").read_text() + (self.folder / "issuer.pem").read_text())
        return chain, self.folder / f"{name}.key"


def environment(folder):
    """The settings are those in the folder, if there are any, and not those of a Porchlight that is installed here."""
    settings = folder / "porchlight.toml"
    return {"PATH": PATH, "PORCHLIGHT_CONFIG": str(settings) if settings.exists() else "/dev/null"}


class Process:
    """A program that runs until the end of a `with` block, in a folder, with its output in a file. It inherits `files`."""

    def __init__(self, folder, name, *command, files=(), **variables):
        self.name, self.log = name, folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.log_start = log.tell()
            # Without settings of the caller.
            self.process = subprocess.Popen([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, pass_fds=files,
                                            env={"HOME": str(folder), **environment(folder), **variables})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Sends SIGTERM and returns the exit code; a process that stays is killed."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(EXIT_LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def wait_for(self, address):
        """Waits until it accepts connections."""
        def accepts():
            expect(self.process.poll() is None, f"{self.name} ended\n{self.log.read_text(errors='replace')}")
            try:
                socket.create_connection(address, timeout=1).close()
                return True
            except OSError:
                return False
        try:
            wait_until(f"{self.name} accepts connections at {address[0]}:{address[1]}", accepts, pause=0.01)
        except BaseException:
            self.stop()
            raise
        return self


def publish(program, folder, *settings):
    """Publishes something that ends as a disk image does, and returns its bytes."""
    image = os.urandom(16 << 20) + b"koly".ljust(512, b"\0")
    (folder / "image.dmg").write_bytes(image)
    (folder / "notes.md").write_text("# A quicker cast\n\nBots answer sooner.\n")
    run(program, "release", "publish", "image.dmg", "--version", "1.4.0", "--notes", "notes.md", "--minimum-macos", "14.0",
        *settings, cwd=folder, env=environment(folder))
    return image


def curl(folder, *arguments):
    """Runs curl and returns the answer; its failing is a finding."""
    head, body = folder / "curl.head", folder / "curl.body"
    for file in (head, body):
        file.write_bytes(b"")
    command = ["curl", "--silent", "--show-error", "--max-time", "30", "--dump-header", head, "--output", body, "--write-out",
               "%{http_code} %{http_version}", *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise CurlFailed(done.returncode, f"{done.stderr.strip()} (curl {' '.join(str(part) for part in arguments)})")
    status, version = done.stdout.split()
    # The last head is that of the answer: one of `100 Continue` may come before.
    lines = re.split(r"\r\n\r\n", head.read_text().rstrip())[-1].splitlines()[1:]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(status), version, headers, body.read_bytes())


def trusting(root):
    return ssl.create_default_context(cafile=root)


def digest(data):
    return hashlib.sha256(data).hexdigest()
