// The pages that links in mail lead to. The links are those of real mails: a service sends them to a mail server of this file.
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:net';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PATIENCE = 30_000;

/** A mail server that takes everything, but for the mails of which `refuses` says so. */
export class Mailbox {
  #mails = [];
  #arrivals = new EventEmitter();
  #refuses;
  /** Answers that are not given yet. */
  #held;

  static async open(refuses = () => false, port = 0) {
    const mailbox = new Mailbox();
    mailbox.#refuses = refuses;
    const server = createServer((socket) => mailbox.#converse(socket)).unref();
    await new Promise((done) => server.listen(port, '127.0.0.1', done));
    mailbox.port = server.address().port;
    return mailbox;
  }

  #converse(socket) {
    let received = '';
    let body = false;
    socket.on('error', () => {}).setEncoding('utf8').write('220 suites\r\n');
    socket.on('data', (data) => {
      received += data;
      for (let end; (end = received.indexOf(body ? '\r\n.\r\n' : '\r\n')) >= 0; ) {
        const part = received.slice(0, end);
        received = received.slice(end + (body ? 5 : 2));
        const refused = body && this.#refuses(part);
        const held = body && this.#held;
        if (body && !refused) this.#keep(part);
        body = !body && /^DATA/i.test(part);
        const said = refused ? '550 5.7.1 <b>no</b>\r\n' : body ? '354 go on\r\n' : '250 taken\r\n';
        if (held) held.push(() => socket.write(said));
        else socket.write(said);
        if (/^QUIT/i.test(part)) socket.end();
      }
    });
  }

  /** From now on mails are taken and not answered, until the function is called that is returned. */
  hold() {
    const held = (this.#held = []);
    return () => {
      this.#held = undefined;
      for (const answer of held) answer();
    };
  }

  #keep(mail) {
    this.#mails.push(mail.replaceAll('=\r\n', ''));
    this.#arrivals.emit('mail');
  }

  /** The mails of which this is a part, once so many have arrived. */
  async mails(pattern, count) {
    const signal = AbortSignal.timeout(PATIENCE);
    for (;;) {
      const found = this.#mails.filter((text) => pattern.test(text));
      if (found.length >= count) return found;
      await once(this.#arrivals, 'mail', { signal });
    }
  }

  /** The path of a link in a mail to this person, once it has arrived. */
  async link(to, pattern) {
    const [mail] = await this.mails(new RegExp(`^To:.*${to}[^]*${pattern.source}`, 'm'), 1);
    return pattern.exec(mail)[0];
  }
}

/** For a service whose mail goes to this port. */
export const mailSettings = (port) => ({
  PORCHLIGHT_SMTP_URL: `smtp://127.0.0.1:${port}?tls=off`, PORCHLIGHT_MAIL_FROM: 'hello@troupe.example', PORCHLIGHT_CONTACT_TO: 'makers@troupe.example',
});
/** For one that sends letters, too. */
export const letterSettings = (port) => ({
  ...mailSettings(port), PORCHLIGHT_BASE_URL: 'https://troupe.example', PORCHLIGHT_POSTAL_ADDRESS: 'Troupe, 1 Stage Road', PORCHLIGHT_LETTERS_ARCHIVE: 'yes',
});

/** All that a letter can have. */
const LETTER = `# What is new

Bots answer *sooner*[^1]. [Read on](/releases), or <https://elsewhere.example/>.

![A lamp above a small stage](stage.png)

### Smaller things

- one
- two \`three\`

> Said by somebody.

| Bot | Time |
|-----|-----:|
| Ada | 2 s  |

[^1]: On most days.
`;

/**
 * Starts a service that sends mail, and gives its address, links for people who confirm and people who unsubscribe, and that of
 * the letter on the site.
 */
export async function mailedPages(start) {
  const mailbox = await Mailbox.open();
  const service = await start({ ...letterSettings(mailbox.port), PORCHLIGHT_CONFIRM_UPDATES: 'yes' });
  const confirmation = async (name) => {
    const headers = { 'Content-Type': 'application/json' };
    await fetch(`${service.base}/api/download`, { method: 'POST', headers, body: JSON.stringify({ email: `${name}@example.com`, updates: true }) });
    return mailbox.link(name, /\/confirm\/[\w-]+/);
  };
  const confirm = await each(['ada', 'grace', 'joan'], confirmation);
  const readers = ['mary', 'edith', 'radia'];
  for (const name of readers) await fetch(service.base + (await confirmation(name)), { method: 'POST' });
  await copyFile(new URL('../content/assets/og.png', import.meta.url), join(service.folder, 'stage.png'));
  await writeFile(join(service.folder, 'letter.md'), LETTER);
  await service.run('letter', 'send', 'letter.md', '--yes');
  const unsubscribe = await each(readers, (name) => mailbox.link(name, /\/unsubscribe\/[\w-]+/));
  const letter = await mailbox.link(readers[0], /\/letters\/[\w-]+/);
  return { base: service.base, confirm, unsubscribe, letter };
}

const each = (names, work) => Promise.all(names.map(work));
