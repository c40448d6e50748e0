"""An older program and the new one on one database, and everything that was acknowledged by either."""

from instance import HOST, MAKERS
from service import expect, wait_until


class TwoPrograms:
    """The programs `old` and `new` on one installation, and everything that was acknowledged."""

    def __init__(self, installation, old, new):
        self.site, self.old, self.new, self.sink = installation, old, new, installation.sink
        self.downloads = self.joins = 0
        self.people, self.messages, self.repeated = set(), set(), set()
        self.releases = 0

    def serve(self, program, *settings):
        name = "old" if program == self.old else "new"
        return self.site.serve(program, name, *settings)

    # What visitors and agents do

    def visit(self, instance, others):
        """Uses everything that a visitor or an agent can use at one instance, and looks for it at the others."""
        mark = f"{instance.name}{len(self.people)}"
        first = f"{mark}-json@example.com"
        self.download(instance, first, already=False)
        for other in [instance, *others]:
            self.download(other, first.upper(), already=True)
        listed = f"{mark}-list@example.com"
        self._join(instance, listed, already=False)
        for other in others:
            self._join(other, listed, already=True)
            self.download(other, listed, already=True)
        told = f"{mark}-tool@example.com"
        instance.tool("join_waitlist", email=told, source="agents")
        self._count_join(told)
        for other in others:
            self._join(other, told, already=True)
        typed = f"{mark}-form@example.com"
        answer = instance.form("/download", email=typed, source="press")
        started = answer.status == 303 and answer.headers["location"].endswith("/download/started")
        expect(started, f"{instance.name}: form: {answer}")
        self.count_download(typed)
        self._write(instance, others, mark)
        for path in ["/", "/about", "/privacy", "/developers", "/contact", "/llms.txt", "/openapi.json", "/releases.json",
                     "/appcast.xml", "/download/started"]:
            answer = instance.get(path)
            expect(answer.status == 200, f"{instance.name}: {path}: {answer}")
        expect("macOS" in instance.tool("about_service"), "about_service says nothing of macOS")
        instance.tool("read_page", page="privacy")
        instance.tool("get_download")

    def count_download(self, email):
        self.downloads += 1
        self.people.add(email.lower())

    def _count_join(self, email):
        self.joins += 1
        self.people.add(email.lower())

    def download(self, instance, email, already, **members):
        answer = instance.post("/api/download", {"email": email, "source": "launch", **members})
        expect(answer["already"] is already, f"{instance.name}: a download says already: {answer['already']}")
        self.count_download(email)

    def _join(self, instance, email, already):
        answer = instance.post("/api/waitlist", {"email": email})
        expect(answer["already"] is already, f"{instance.name}: a join says already: {answer['already']}")
        self._count_join(email)

    def _write(self, instance, others, mark):
        """The same message at every instance is one."""
        text = f"message-{mark}-end"
        for one in [instance, *others]:
            one.post("/api/contact", {"email": "ada@example.com", "name": "Ada", "message": text})
        self.messages.add(text)
        answer = instance.form("/contact", email="bob@example.com", message=f"form-{mark}-end")
        expect(answer.status == 303, f"{instance.name}: contact form: {answer}")
        self.messages.add(f"form-{mark}-end")

    # What makers do

    def publish_first(self):
        """Without a release, downloads are refused."""
        self.site.command(self.old, "release", "publish", self._image("0.9.0"), "--version", "0.9.0")

    def _image(self, content):
        """Something that ends as a disk image does."""
        image = self.site.folder / "image.dmg"
        image.write_bytes(content.encode() * 1000 + b"koly".ljust(512, b"\0"))
        return image

    def publish(self, program, instances):
        """Publishes an image, finds it at each instance, and withdraws it with the other program."""
        self.releases += 1
        other = self.old if program == self.new else self.new
        for version in (f"{self.releases}.0.0", f"{self.releases}.1.0"):
            image = self._image(version)
            self.site.command(program, "release", "publish", image, "--version", version, "--minimum-macos", "14.0")
            for instance in instances:
                self._expect_newest(instance, version, image.read_bytes())
        self.site.command(other, "release", "withdraw", version, "--yes")
        for instance in instances:
            self._wait_for_newest(instance, f"{self.releases}.0.0")

    def _wait_for_newest(self, instance, version):
        """An instance reads the releases twice a second."""
        def is_newest():
            latest = instance.get("/releases/latest/Troupe.dmg")
            return latest.status == 302 and latest.headers.get("location", "").endswith(f"/releases/Troupe-{version}.dmg")
        wait_until(f"{version} is the newest at {instance.name}", is_newest)

    def _expect_newest(self, instance, version, image):
        self._wait_for_newest(instance, version)
        expect(instance.get(f"/releases/Troupe-{version}.dmg").body == image, f"{instance.name}: another image")

    def commands(self, program):
        """Every command that reads shows what both programs have stored."""
        site = self.site
        listed = {person["email"].lower() for person in site.json(program, "people", "list")}
        expect(self.people <= listed, f"people list lacks {sorted(self.people - listed)[:3]}")
        exported = site.command(program, "people", "export").lower()
        expect(all(person in exported for person in self.people), "people export lacks somebody")
        for person in sorted(self.people)[::7]:
            shown = site.json(program, "people", "show", person)
            expect(shown["downloads"] or shown["waitlist"], f"people show: {shown}")
        stored = [message["message"] for message in site.json(program, "inbox", "list")]
        expect(sorted(stored) == sorted(self.messages), f"inbox list has {len(stored)} messages of {len(self.messages)}")
        total = site.json(program, "stats")["total"]
        expect((total["downloads"], total["joins"], total["messages"]) == (self.downloads, self.joins, len(self.messages)),
               f"stats: {total} instead of {self.downloads} downloads, {self.joins} joins, {len(self.messages)} messages")
        site.command(program, "check")
        site.command(program, "release", "list")

    def _mails_with(self, text):
        return [mail for mail in self.sink.mails if mail.recipient == MAKERS and text in mail.content.get_content()]

    def expect_forwarded(self):
        """Each message was mailed once, except those whose mail had to be repeated."""
        wait_until("all messages are forwarded", lambda: all(self._mails_with(text) for text in self.messages))
        for text in self.messages - self.repeated:
            mails = len(self._mails_with(text))
            expect(mails == 1, f"the message {text!r} was mailed {mails} times")

    def repeat_mail(self, first, second):
        """A mail may have arrived when the first program is stopped. The second one sends the same mail again."""
        text = f"repeated-{len(self.repeated)}-end"
        with self.serve(first) as instance:
            self.expect_forwarded()
            self.sink.drop_next = True
            instance.post("/api/contact", {"email": "ada@example.com", "name": "Ada", "message": text})
            wait_until("the mail was tried", lambda: self._message(first, text)["tries"] > 0)
        self.messages.add(text)
        self.repeated.add(text)
        with self.serve(second):
            self.site.command(second, "inbox", "retry", self._message(second, text)["id"])
            wait_until("the mail is repeated", lambda: len(self._mails_with(text)) == 2)
            wait_until("the mail is recorded as sent", lambda: self._message(second, text)["state"] == "sent")
        one, two = self._mails_with(text)
        expect(one.undated() == two.undated(), f"the programs sent different mails:\n{one.content}\n{two.content}")

    def _message(self, program, text):
        return next(message for message in self.site.json(program, "inbox", "list") if message["message"] == text)
