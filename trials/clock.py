"""The clock of programs that a trial starts: libfaketime changes what they read of the system time while they run."""

import os
import pathlib
import time

from service import expect, install

LIBRARY = "faketime/libfaketimeMT.so.1"


class Clock:
    """The seconds by which the system time is shifted for what is started with `variables`. Durations are not shifted."""

    def __init__(self, folder, seconds=0):
        install({"faketime": "faketime"})
        found = sorted(pathlib.Path("/usr/lib").glob(f"*/{LIBRARY}"))
        expect(found, f"{LIBRARY} is not installed")
        self.file, self.seconds = folder / "clock", None
        self.variables = {"LD_PRELOAD": str(found[0]), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
                          "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
        self.shift(seconds)

    def shift(self, seconds):
        """Sets the shift. The file is replaced, so that nobody reads a part of it."""
        part = self.file.with_suffix(".new")
        part.write_text(f"{seconds:+.3f}\n")
        os.replace(part, self.file)
        self.seconds = seconds

    def advance(self, seconds):
        self.shift(self.seconds + seconds)

    def set(self, unix_time):
        self.shift(unix_time - time.time())

    def now(self):
        return time.time() + self.seconds
