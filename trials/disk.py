"""A disk with a write cache that loses power, with an ext4 file system on it.

The disk is a file of a FUSE file system (`python3 disk.py IMAGE FILE` serves it), and ext4 is mounted from it by a loop device. So
every write and every flush of the file system is seen here: a write is in the cache of the disk until the next flush. A power
cut leaves what was flushed, and some of the blocks that were only in the cache, whichever; from then on the disk fails.
"""

import ctypes
import errno
import os
import pathlib
import random
import select
import stat
import struct
import subprocess
import sys

from service import expect, install, run, wait_until

SIZE = 48 << 20
# What the disk writes at once.
BLOCK = 4096
MAX_WRITE = 128 << 10
IN_NAMESPACE = "PORCHLIGHT_TRIAL_NAMESPACE"

# The protocol of the kernel, linux/fuse.h: numbers of operations, and layouts.
GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT = 3, 4, 14, 15, 16, 18, 20, 25, 26
WITHOUT_REPLY = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
BIG_WRITES = 1 << 5
IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
INIT_OUT, ATTRIBUTES, OPEN_OUT = struct.Struct("<IIIIHHIIHHI28x"), struct.Struct("<QIIQQQQQQIIIIIIIIII"), struct.Struct("<QII")
RANGE, WRITE_IN, WRITE_OUT = struct.Struct("<QQI"), struct.Struct("<QQIIQII"), struct.Struct("<II")


def with_own_mounts(program, **options):
    """Starts the trial again as root in a mount namespace of its own, so that what it mounts ends with it, whatever happens."""
    if IN_NAMESPACE in os.environ:
        return
    install({"mkfs.ext4": "e2fsprogs"})
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    options = [part for name, value in options.items() if value for part in (f"--{name}", str(value))]
    command = [*root, "unshare", "--mount", "env", f"{IN_NAMESPACE}=1", sys.executable, sys.argv[0], str(program), *options]
    os.execvp(command[0], command)


def format_image(image, size):
    with open(image, "wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-F", image)
    return image


class Cache:
    """The contents of the disk: as the computer sees them, and as they are without power."""

    def __init__(self, image):
        self.visible = bytearray(pathlib.Path(image).read_bytes())
        self.durable, self.pending, self.has_power = bytearray(self.visible), [], True

    def write(self, offset, data):
        self.visible[offset:offset + len(data)] = data
        self.pending += [(offset + at, data[at:at + BLOCK]) for at in range(0, len(data), BLOCK)]

    def flush(self):
        for offset, data in self.pending:
            self.durable[offset:offset + len(data)] = data
        self.pending = []

    def cut(self, share, result):
        """Writes what is left to a file; of the cache, each block with the probability `share`. Returns how many blocks were only
        in the cache, and how many of them are left."""
        self.has_power, kept = False, [block for block in self.pending if random.random() < share]
        blocks, self.pending = len(self.pending), kept
        self.flush()
        pathlib.Path(result).write_bytes(self.durable)
        return blocks, len(kept)


class Server:
    """Serves one file, which is the root of the file system."""

    def __init__(self, image, place):
        self.cache, self.planned, self.operations_left = Cache(image), None, 0
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode={stat.S_IFREG:o},user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"disk", os.fsencode(place), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def run(self):
        """Until the file system is unmounted, or the trial has ended. A line of standard input orders a power cut: the share, after
        how many more writes and flushes, and the name of the result."""
        while True:
            readable = select.select([self.device, sys.stdin], [], [])[0]
            if sys.stdin in readable:
                line = sys.stdin.readline()
                if not line:
                    return
                share, operations, result = line.rstrip("\n").split(" ", 2)
                self.planned, self.operations_left = (float(share), result), int(operations)
                self._cut_if_due()
            if self.device in readable:
                try:
                    self._answer(os.read(self.device, MAX_WRITE + 4096))
                except OSError as error:
                    if error.errno == errno.ENODEV:
                        return
                    # ENOENT: the request was taken back.
                    if error.errno != errno.ENOENT:
                        raise

    def _cut_if_due(self):
        if self.planned and self.operations_left == 0:
            print(*self.cache.cut(*self.planned), flush=True)
            self.planned = None

    def _answer(self, request):
        _, operation, unique, *_ = IN_HEADER.unpack_from(request)
        if operation in WITHOUT_REPLY:
            return
        try:
            code, body = 0, self._do(operation, memoryview(request)[IN_HEADER.size:])
        except OSError as error:
            code, body = -error.errno, b""
        os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(body), code, unique) + body)

    def _do(self, operation, body):
        cache = self.cache
        if operation == INIT:
            return INIT_OUT.pack(7, 31, MAX_WRITE, BIG_WRITES, 16, 12, MAX_WRITE, 1, 0, 0, 0)
        if operation in (GETATTR, SETATTR):
            size = len(cache.visible)
            return ATTRIBUTES.pack(3600, 0, 0, 1, size, size // 512, 0, 0, 0, 0, 0, 0, stat.S_IFREG | 0o600, 1, 0, 0, 0, BLOCK, 0)
        if operation == OPEN:
            return OPEN_OUT.pack(1, 0, 0)
        if operation in (RELEASE, FLUSH):  # FLUSH is sent when a file is closed
            return b""
        if operation == READ:
            _, offset, size = RANGE.unpack_from(body)
            return bytes(cache.visible[offset:offset + size])
        if operation in (WRITE, FSYNC):
            self._cut_if_due()
            self.operations_left -= 1
            if not cache.has_power:
                raise OSError(errno.EIO, "no power")
        if operation == WRITE:
            _, offset, size, *_ = WRITE_IN.unpack_from(body)
            cache.write(offset, bytes(body[WRITE_IN.size:WRITE_IN.size + size]))
            return WRITE_OUT.pack(size, 0)
        if operation == FSYNC:
            cache.flush()
            return b""
        raise OSError(errno.ENOSYS, "not supported")


class Disk:
    """The disk with its file system, mounted at `place` until the end of a `with` block."""

    def __init__(self, folder, place, image=None, options="loop"):
        folder.mkdir(exist_ok=True)
        place.mkdir(exist_ok=True)
        self.folder, self.place, self.file, self.options = folder, place, folder / "disk", options
        self.file.touch()
        self.image = image or format_image(folder / "new.img", SIZE)

    def __enter__(self):
        command = [sys.executable, "-B", __file__, self.image, self.file]
        self.server = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            def is_there():
                expect(self.server.poll() is None, "the disk could not be made: this machine allows no FUSE file system")
                return self.file.stat().st_size == SIZE
            wait_until("the disk is there", is_there, pause=0.01)
            run("mount", "-o", self.options, self.file, self.place)
        except BaseException:
            self._end()
            raise
        return self

    def cut_power(self, share, operations=0):
        """After so many more writes and flushes. Returns the image that is left, the number of blocks that were only in the cache,
        and how many of them are left."""
        image = self.folder / ("cut-a.img" if self.image.name == "cut-b.img" else "cut-b.img")
        self.server.stdin.write(f"{share} {operations} {image}\n")
        self.server.stdin.flush()
        blocks, kept = map(int, self.server.stdout.readline().split())
        return image, blocks, kept

    def __exit__(self, failure, *_):
        # After a failure somebody may still use it.
        run("umount", *(["--lazy"] if failure else []), self.place)
        self._end()

    def _end(self):
        # The server ends with its input, before it is unmounted: it may be about to mount.
        self.server.stdin.close()
        try:
            self.server.wait(15)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        subprocess.run(["umount", "--lazy", self.file], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    Server(*sys.argv[1:]).run()
