"""The figures of a campaign: one JSON line for each part of it, in a file, so that a campaign that was ended goes on there."""

import datetime
import json
import pathlib


class Results:
    """Without a file the figures are only kept until the end."""

    def __init__(self, trial, file=None):
        self.trial, self.file, self.lines = trial, file and pathlib.Path(file), []
        if self.file and self.file.exists():
            lines = [json.loads(line) for line in self.file.read_text().splitlines() if line.strip()]
            self.lines = [line for line in lines if line["trial"] == trial]

    def add(self, **figures):
        line = {"trial": self.trial, "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), **figures}
        self.lines.append(line)
        if self.file:
            with open(self.file, "a") as file:
                file.write(json.dumps(line) + "\n")

    def failed(self, finding, **about):
        """A part of the campaign that broke a promise stays in the file, and counts for nothing."""
        self.add(finding=str(finding), **about)

    def of(self, name, **about):
        """The figures with this name of all parts that are about something, such as database="SQLite"."""
        return [line[name] for line in self.lines
                if name in line and "finding" not in line and about.items() <= line.items()]
