// What is sent to a service with a desk: believable people and messages, and those that try its pages.
import { createHash } from 'node:crypto';

const NAMES = `Agnes Holm, Aiko Mori, Amara Diallo, Ana Prado, Anton Berg, Bea Fontaine, Carl Lindgren, Chiara Conti, Dana Novak, Elif Aydin,
  Emil Sand, Farah Aziz, Gus Keller, Hana Kim, Ines Duarte, Ivo Petrov, Jonas Weber, Kaja Nowak, Leo Marchetti, Lena Fuchs,
  Maren Olsen, Mateo Ruiz, Mina Park, Nadia Haddad, Nils Aaker, Noor Rahman, Olga Sokol, Otto Brandt, Paula Reis, Priya Raman,
  Rafael Costa, Rosa Jung, Sami Laine, Sofia Greco, Tariq Nasser, Tomas Rey, Una Byrne, Vera Horn, Wim Jansen, Yara Cohen`.split(/,\s+/);
const addressOf = (name) => `${name.toLowerCase().replace(' ', '.')}@example.com`;

/** In the order in which they came. */
export const PEOPLE = NAMES.map((name, place) => ({ email: addressOf(name), updates: place % 3 === 0, ...(place % 7 === 5 && { waitlist: true }) }));

export const MESSAGES = [
  ['Otto Brandt', 'Version 1.4.0 opens in under a second on my old laptop. Nothing to fix, I only wanted to say so.'],
  ['Hana Kim', 'I moved to a new Mac. Do the routines come along, or do I have to copy a folder first?'],
  ['Rafael Costa', 'Tally counts a receipt twice if I drop it as a PDF and as a photo. I can send you both files.'],
  ['Ines Duarte', 'Is there a way to see what Quill wrote before I was away? The window only goes back to Monday.'],
  ['Jonas Weber', 'The routine at seven did not run while the lid was closed. Could it run when the Mac wakes up?'],
  [
    'Maren Olsen',
    `Scout asks before it moves anything now, which is what I had hoped for. Thank you.

Could I let it move screenshots without asking, and nothing else? I take about thirty a day, and I say yes to every one of them.

Maren`,
  ],
].map(([name, message]) => ({ name, email: addressOf(name), message }));
export const [, , , , , UNANSWERED] = MESSAGES;
export const [ANSWERED] = MESSAGES;

/** The mail server of the suites does not take this one. */
export const REFUSED = { name: 'Refused <b>', email: 'refused@example.com', message: 'Nobody takes this.' };
/** Not mailed yet, because it comes when the one above was refused. */
export const WAITING = { name: 'Waiting', email: 'waiting@example.com', message: 'Later.' };

/** Is discarded. */
export const DISCARDED = { email: 'discarded@example.com', message: 'No name.' };

export const LONG = { email: `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example`, updates: true };

/** The first can be sent; the second cannot yet. */
export const DRAFTS = [
  {
    markdown: `---
subject: What is new in November
---
# Bots that answer sooner

[Read on](/releases), or <https://elsewhere.example/>.

![A lamp above a small stage](stage.png)
`,
    images: ['stage.png', 'spare.png'],
  },
  { markdown: 'No heading yet.\n' },
];

/** One in each state. */
const to = (state, { email }, more = {}) => ({ address: email, state, ...more });
export const LETTERS = [
  { subject: 'Sending it', run: 'service', recipients: [to('sent', PEOPLE[0]), to('waiting', PEOPLE[6]), to('waiting', PEOPLE[9])] },
  {
    subject: 'What is <b>new</b> in November', run: 'stopped', stop_reason: `The mail server said: 554 5.7.1 ${'x'.repeat(60)}`,
    recipients: [to('refused', LONG, { last_error: `554 5.7.1 <b>${'y'.repeat(60)}</b>` }), to('waiting', PEOPLE[0])],
  },
  { subject: 'By hand', run: 'command', recipients: [to('sent', PEOPLE[0]), to('waiting', PEOPLE[6])] },
  {
    subject: 'Before', run: 'command', archived: 1,
    recipients: [to('sent', PEOPLE[0]), to('sent', PEOPLE[6], { bounce: '5.1.1', bounced_at: 0 }), to('skipped', PEOPLE[3], { last_error: 'suppressed' })],
  },
];

/** What people and programs type to break a page, or without a thought. */
export const HOSTILE = [
  { name: '<script>alert(1)</script>', email: 'script@example.com', message: '</div><img src=x onerror=alert(1)> & "quotes" \' `code`\n\n</textarea>' },
  { name: 'W'.repeat(100), email: 'wide@example.com', message: 'W'.repeat(4000) },
  { name: '\u202eليلى بنت سعيد', email: 'layla@example.com', message: 'كيف أشغّل الروتين عندما يكون الجهاز نائمًا؟ \u202e שלום'.repeat(8) },
  { name: '山田太郎'.repeat(25), email: 'taro@example.com', message: 'ノートを閉じているときにルーチンが動きません。'.repeat(40) },
  { email: LONG.email, message: 'No name.' },
];

/** More than fits on a page, and nothing that a compression finds again. */
const noise = (place) => createHash('sha512').update(`${place}`).digest('base64url');
export const MANY_MESSAGES = Array.from({ length: 55 }, (_, place) => ({
  name: noise(place).slice(0, 40), email: `writer-${place}@example.com`, message: `${noise(`a ${place}`)} ${noise(`b ${place}`)}`,
}));
export const MANY_PEOPLE = Array.from({ length: 55 }, (_, place) => ({ email: `${noise(place).slice(1, 41)}@example.org`, updates: place % 2 === 0 }));

async function send(base, path, body) {
  const answer = await fetch(base + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  if (answer.status !== 200) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
}

/** As visitors do. One after the other: lists are in the order in which people came. */
export async function fill(base, { people = [], messages = [] }) {
  for (const { waitlist, email, updates } of people) await send(base, waitlist ? '/api/waitlist' : '/api/download', waitlist ? { email } : { email, updates });
  for (const message of messages) await send(base, '/api/contact', message);
}
