"""The results of a campaign: one JSON line per run, so that a campaign that was interrupted goes on where it ended."""

import datetime
import json


class Results:
    """Without a file nothing is kept."""

    def __init__(self, trial, file):
        self.trial, self.file, self.known = trial, file, {}
        if file and file.exists():
            for line in map(json.loads, file.read_text().splitlines()):
                if line["trial"] == trial:
                    self.known[line["part"], line["run"]] = line

    def missing(self, part, count):
        """The numbers of the runs of a part that are not in the file yet."""
        return [run for run in range(count) if (part, run) not in self.known]

    def values(self, part, name):
        """One figure of all runs of a part, also of those that were made before."""
        return [figures[name] for (of, _), figures in self.known.items() if of == part]

    def add(self, part, run, figures):
        self.known[part, run] = figures
        if self.file:
            time = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            with open(self.file, "a") as lines:
                lines.write(json.dumps({"trial": self.trial, "part": part, "run": run, "time": time, **figures}) + "\n")
