// Services with a desk: their data, a session, and links to sign in.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  ANSWERED, DISCARDED, DRAFTS, fill, HOSTILE, LETTERS, LONG, MANY_MESSAGES, MANY_PEOPLE, MESSAGES, PEOPLE, REFUSED, WAITING,
} from './desk-data.mjs';
import { letterSettings, Mailbox, mailSettings } from './mailed.mjs';
import { freePort } from './processes.mjs';

const PATIENCE = 30_000;
const LINKS = 6;
const SUPPRESSED = PEOPLE[7].email;

/** A service with nothing in it, and no mail. Over https its desk is at the public address, else on the ops listener. */
export async function emptyDesk({ another, overHttps }, settings) {
  const service = await another({
    PORCHLIGHT_OPS_LISTEN: `127.0.0.1:${await freePort()}`, PORCHLIGHT_DESK: overHttps ? 'public' : 'private', PORCHLIGHT_CLIENT_LIMITS: 'off', ...settings,
  });
  const link = async () => /https?:\S+/.exec(await service.run('desk', '--name', 'ada'))[0];
  const links = [];
  while (links.length < LINKS) links.push(await link());
  return { service, desk: { base: service.base, links, ...(await session(await link(), overHttps ? service.base : undefined)) } };
}

/** The same with all that letters need; its mail goes to a port where nobody listens yet. */
export async function sendingDesk(context) {
  const mailPort = await freePort();
  const { service, desk } = await emptyDesk(context, letterSettings(mailPort));
  return { service, desk: { ...desk, mailPort } };
}

/**
 * Signs in as a browser does; gives the origin of the desk and its cookies, as Playwright takes them. The link is one to the
 * service at `origin`, whatever it names as its public address.
 */
export async function session(link, origin = new URL(link).origin) {
  const headers = { Origin: new URL(link).origin };
  const answer = await fetch(origin + new URL(link).pathname, { method: 'POST', headers, redirect: 'manual' });
  const cookies = answer.headers.getSetCookie().map((line) => /^([^=]+)=([^;]+);/.exec(line)).filter(Boolean);
  return { origin, cookies: cookies.map(([, name, value]) => ({ name, value, url: origin, httpOnly: true, secure: origin.startsWith('https:'), sameSite: 'Strict' })) };
}

/** What a form of the desk sends. */
async function post({ origin, cookies }, path, fields) {
  const headers = { Origin: origin, Cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; ') };
  const answer = await fetch(`${origin}/desk${path}`, { method: 'POST', headers, body: new URLSearchParams(fields), redirect: 'manual' });
  if (answer.status !== 303) throw new Error(`POST ${path}: ${answer.status}`);
}

/** With the people and messages of an app with few visitors. */
export async function smallDesk(context, settings) {
  const { service, desk } = await emptyDesk(context, settings);
  await fill(service.base, { people: PEOPLE, messages: MESSAGES });
  await service.run('people', 'suppress', SUPPRESSED);
  const [answered] = JSON.parse(await service.run('inbox', 'list', '--json')).filter(({ email }) => email === ANSWERED.email);
  await service.run('inbox', 'answered', answered.id);
  return { service, desk };
}

/** With more than a page of each list, with names and texts that try the pages, and mail, some of which is refused. */
export async function fullDesk(context) {
  const mailbox = await Mailbox.open((mail) => mail.includes(REFUSED.message));
  const { service, desk } = await smallDesk(context, { ...mailSettings(mailbox.port), PORCHLIGHT_DESK_EMAIL: 'ada@troupe.example' });
  await fill(service.base, { people: [...MANY_PEOPLE, LONG], messages: [...MANY_MESSAGES, ...HOSTILE, DISCARDED] });
  // More than a page of what makers did.
  for (let times = 0; times < 26; times += 1) for (const action of ['suppress', 'unsuppress']) await post(desk, `/people/${action}`, { email: LONG.email });
  const database = databaseOf(service);
  const signal = AbortSignal.timeout(PATIENCE);
  const until = async (sql) => {
    while (!database.prepare(sql).run().changes) await delay(20, null, { signal });
  };
  await until("UPDATE outbox SET tries = tries WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE state <> 'sent')");
  await fill(service.base, { messages: [REFUSED] });
  // The service gives up after seven days.
  await until("UPDATE outbox SET state = 'failed' WHERE state = 'waiting' AND tries > 0");
  database.close();
  await fill(service.base, { messages: [WAITING] });
  return { service, desk };
}

const databaseOf = (service) => new DatabaseSync(join(service.folder, 'data/porchlight.db'), { timeout: 5000 });

/** With drafts, letters in every state and a release that was withdrawn. No mail leaves, so the letters are written into the database. */
export async function publishingDesk(context) {
  const { service, desk } = await sendingDesk(context);
  await fill(service.base, { people: [...PEOPLE, LONG] });
  await service.run('people', 'suppress', PEOPLE[3].email);
  await service.run('release', 'withdraw', '1.3.0', '--reason', 'It lost <b>routines</b>.', '--yes');
  await service.run('release', 'publish', 'image.dmg', '--version', '1.5.0', '--channel', 'beta', '--minimum-macos', '14.0');
  const image = (await readFile(new URL('../content/assets/og.png', import.meta.url))).toString('base64');
  const database = databaseOf(service);
  const insert = (table, row) => {
    const names = Object.keys(row);
    database.prepare(`INSERT INTO ${table} (${names}) VALUES (${names.map(() => '?')})`).run(...Object.values(row));
  };
  const now = Date.now();
  for (const [place, { images = [], markdown }] of DRAFTS.entries()) {
    const id = `00000000-0000-7000-8000-00000000000${place}`;
    insert('drafts', { id, markdown, saved_at: now - place });
    for (const name of images) insert('draft_images', { draft: id, name, content: image });
  }
  for (const [place, { recipients, ...letter }] of LETTERS.entries()) {
    const id = `${place}`.repeat(64);
    const count = (state) => recipients.filter((each) => each.state === state).length;
    const counts = Object.fromEntries(['waiting', 'sent', 'refused', 'skipped'].map((state) => [state, count(state)]));
    insert('letters', { id, started_at: now - place, markdown: '# Hello', bounced: recipients.filter(({ bounce }) => bounce).length, ...counts, ...letter });
    for (const each of recipients) insert('letter_recipients', { letter: id, at: Date.now(), tries: 0, ...each });
  }
  database.close();
  return { service, desk };
}
