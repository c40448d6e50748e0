// Services with a desk: their data, a session, and links to sign in.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { ANSWERED, DISCARDED, fill, HOSTILE, LONG, MANY_MESSAGES, MANY_PEOPLE, MESSAGES, PEOPLE, REFUSED, WAITING } from './desk-data.mjs';
import { Mailbox } from './mailed.mjs';
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
  return { service, desk: { base: service.base, links, ...(await session(await link())) } };
}

/** Signs in as a browser does; gives the origin of the desk and its cookies, as Playwright takes them. */
export async function session(link) {
  const { origin } = new URL(link);
  const answer = await fetch(link, { method: 'POST', headers: { Origin: origin }, redirect: 'manual' });
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
  const { service, desk } = await smallDesk(context, {
    PORCHLIGHT_SMTP_URL: `smtp://127.0.0.1:${mailbox.port}?tls=off`, PORCHLIGHT_MAIL_FROM: 'hello@troupe.example',
    PORCHLIGHT_CONTACT_TO: 'makers@troupe.example', PORCHLIGHT_DESK_EMAIL: 'ada@troupe.example',
  });
  await fill(service.base, { people: [...MANY_PEOPLE, LONG], messages: [...MANY_MESSAGES, ...HOSTILE, DISCARDED] });
  // More than a page of what makers did.
  for (let times = 0; times < 26; times += 1) for (const action of ['suppress', 'unsuppress']) await post(desk, `/people/${action}`, { email: LONG.email });
  const database = new DatabaseSync(join(service.folder, 'data/porchlight.db'), { timeout: 5000 });
  const signal = AbortSignal.timeout(PATIENCE);
  const until = async (sql) => {
    while (!database.prepare(sql).run().changes) await delay(20, null, { signal });
  };
  await until("UPDATE outbox SET tries = tries WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE state <> 'sent')");
  await fill(service.base, { messages: [REFUSED] });
  // The service gives up after seven days.
  await until("UPDATE outbox SET state = 'failed' WHERE state = 'waiting' AND tries > 0");
  await service.run('release', 'withdraw', '1.3.0', '--reason', 'It lost <b>routines</b>.', '--yes');
  // No letter is sent from a preview, so this one is written into the database.
  const letter = 'ab'.repeat(32);
  const row = database.prepare('INSERT INTO letters (id, subject, started_at, waiting, refused, markdown, run, stop_reason) VALUES (?, ?, ?, 1, 1, ?, ?, ?)');
  row.run(letter, 'What is <b>new</b> in November', Date.now(), '# What is new\n\nHello', 'stopped', `The mail server said: 554 5.7.1 ${'x'.repeat(200)}`);
  const recipient = database.prepare('INSERT INTO letter_recipients (letter, address, state, at, tries, last_error) VALUES (?, ?, ?, ?, 0, ?)');
  recipient.run(letter, LONG.email, 'refused', Date.now(), `554 5.7.1 <b>${'y'.repeat(200)}</b>`);
  recipient.run(letter, PEOPLE[0].email, 'waiting', Date.now(), null);
  database.close();
  await post(desk, '/letters/new', {});
  await fill(service.base, { messages: [WAITING] });
  return { service, desk };
}
