"""A letter that is sent while a trial takes databases away."""

import json
import threading

from service import Failed, environment, expect, run


class Letter:
    """Sends one letter to many people, and starts again when the sender gave up."""

    def __init__(self, program, folder, database, sink, people):
        self.folder, self.sink, self.starts = folder, sink, 0
        self.asked = {f"reader{number}@example.com" for number in range(people)}
        self.command = [program, "--database-url", database, "--data-dir", folder / "data", "--base-url", "https://troupe.example",
                        "--smtp-url", f"smtp://127.0.0.1:{sink.port}", "--mail-from", "hello@troupe.example",
                        "--contact-to", "makers@troupe.example", "--postal-address", "1 Lamp Street, Oldtown",
                        "--letter-rate", "2"]
        rows = "".join(f"{address},true\n" for address in sorted(self.asked))
        (folder / "readers.csv").write_text(f"email,updates\n{rows}")
        (folder / "letter.md").write_text("# What is new in November\n\nBots answer *sooner*.\n")
        self._run("people", "import", folder / "readers.csv")
        self.ended = threading.Event()
        self.sender = threading.Thread(target=self._send, daemon=True)
        self.sender.start()

    def _run(self, *arguments):
        program, *settings = self.command
        return run(program, *arguments, *settings, env={"HOME": str(self.folder), **environment(self.folder)})

    def _send(self):
        while not self.ended.is_set():
            self.starts += 1
            try:
                self._run("letter", "send", self.folder / "letter.md", "--yes")
                return
            except Failed:
                self.ended.wait(1)

    def finish(self, limit):
        """Waits for the last letter. Returns what `letter status` says."""
        self.sender.join(limit)
        self.ended.set()
        expect(not self.sender.is_alive(), f"the letter was not sent within {limit} s")
        got = {address: count for address, count in self.sink.recipients.items() if address.startswith("reader")}
        twice = [address for address, count in got.items() if count > 1]
        expect(not twice, f"{len(twice)} people got the letter twice, such as {twice[:1]}")
        status = json.loads(self._run("letter", "status", "--json"))
        sent, uncertain = status["sent"], status["uncertain"]
        expect(status["waiting"] == 0 and sent + uncertain == len(self.asked), f"the letter is not accounted for: {status}")
        expect(sent <= len(got) <= sent + uncertain, f"{len(got)} letters arrived: {status}")
        return status
