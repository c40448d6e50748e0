// What a maker can bring the desk into.
import { open } from './chromium.mjs';
import { ANSWERED, DISCARDED, HOSTILE, LONG, PEOPLE, REFUSED, UNANSWERED, WAITING } from './desk-data.mjs';

/** Presses a button, and waits for the page that follows. */
export async function press(page, name, within = page.locator('main')) {
  await Promise.all([page.waitForEvent('load'), within.getByRole('button', { name }).first().click()]);
  await page.evaluate(() => document.fonts.ready.then(() => {}));
}

export async function search(page, text) {
  await page.getByRole('searchbox').fill(text);
  await press(page, 'Search');
}

async function follow(page, link) {
  const href = await link.first().getAttribute('href');
  await open(page, new URL(href, page.url()).href);
}

/** Functions that bring a browser's page to a page of the desk, signed in, and then do something there. */
const ways = ({ origin, cookies }) => {
  const to = (path, next = () => {}) => async (page) => {
    await page.context().addCookies(cookies);
    await open(page, `${origin}/desk${path}`);
    await next(page);
  };
  const find = (path, next) => ({ email }, then = () => {}) =>
    to(path, async (page) => {
      await search(page, email);
      await next(page, email);
      await then(page);
    });
  const first = (page) => follow(page, page.locator('.rows a'));
  return {
    to,
    first,
    message: find('/inbox?filter=failed', first),
    person: find('/people', first),
    /** Somebody who is in no list. */
    stranger: find('/people', (page, email) => press(page, `Look up ${email}`)),
  };
};
const discard = (page) => follow(page, page.getByRole('link', { name: 'Discard…' }));

/** By name, with the messages and people of `smallDesk`. None changes anything that another one shows. */
export function deskStates(desk) {
  const { to, message, person, stranger } = ways(desk);
  return {
    'sign-in': (page) => open(page, `${desk.origin}/desk/sign-in`),
    'sign-in-link': (page) => open(page, desk.links[0]),
    'sign-in-link-used': (page) => open(page, `${desk.origin}/desk/sign-in/${'0'.repeat(64)}`),
    overview: to(''),
    inbox: to('/inbox'),
    'inbox-all': to('/inbox?filter=all'),
    'inbox-waiting': to('/inbox?filter=waiting'),
    'inbox-failed': to('/inbox?filter=failed'),
    'inbox-found': to('/inbox', (page) => search(page, 'routine')),
    'inbox-found-nothing': to('/inbox', (page) => search(page, '<i>nothing</i>')),
    message: message(UNANSWERED),
    'message-answered': message(ANSWERED),
    'message-discard': message(UNANSWERED, discard),
    people: to('/people'),
    'people-suppressed': to('/people?state=suppressed'),
    'people-found': to('/people', (page) => search(page, '@example.com')),
    'people-found-nobody': to('/people', (page) => search(page, 'nobody@example.com')),
    'people-invalid': to('/people?state=opted-in', (page) => search(page, '@<b>')),
    person: person(PEOPLE[0]),
    'person-waitlist': person(PEOPLE.find(({ waitlist }) => waitlist)),
    'person-who-wrote': person(UNANSWERED),
    'person-suppressed': to('/people?state=suppressed', (page) => follow(page, page.locator('.rows a'))),
    'person-unknown': stranger({ email: 'nobody@example.com' }),
    'person-erase': person(PEOPLE[0], (page) => press(page, 'Erase…')),
    letters: to('/letters'),
    releases: to('/releases'),
    site: to('/site'),
    'site-read-again': to('/site?done=site-read'),
    check: to('/site/check'),
    activity: to('/activity'),
    'not-found': to('/no-such-page'),
    'session-ended': to('/site', async (page) => {
      await page.context().clearCookies();
      await press(page, 'Read the site again');
    }),
  };
}

/** With those of `fullDesk`. */
export function fullDeskStates(desk) {
  const { to, first, message, person, stranger } = ways(desk);
  const older = (page) => follow(page, page.getByRole('link', { name: 'Older' }));
  return {
    'inbox-full': to('/inbox'),
    'inbox-older': to('/inbox', older),
    'inbox-full-waiting': to('/inbox?filter=waiting'),
    'inbox-full-failed': to('/inbox?filter=failed'),
    'inbox-found-older': to('/inbox', async (page) => {
      await search(page, 'writer');
      await press(page, 'Older');
    }),
    ...Object.fromEntries(HOSTILE.map((each, place) => [`message-hostile-${place}`, message(each)])),
    'message-waiting': message(WAITING),
    'message-failed': message(REFUSED),
    'message-failed-discard': message(REFUSED, discard),
    'message-discarded': message(DISCARDED, async (page) => {
      await discard(page);
      await press(page, 'Discard the message');
    }),
    'people-full': to('/people'),
    'people-older': to('/people', older),
    'person-long': person(LONG),
    'person-who-only-wrote': stranger(HOSTILE[0]),
    'person-erased': person(PEOPLE[1], async (page) => {
      await press(page, 'Erase…');
      await press(page, 'Erase the person');
    }),
    'activity-older': to('/activity', older),
    'address-invalid': person(PEOPLE[0], async (page) => {
      await page.locator('main [name=email]').evaluateAll((fields) => fields.forEach((field) => (field.value = '<b>')));
      await press(page, 'Suppress');
    }),
    'from-elsewhere': async (page) => {
      await page.goto(`data:text/html,<form method="post" action="${desk.origin}/desk/sign-out"><button>Go</button></form>`);
      await press(page, 'Go', page);
    },
    'sign-in-asked': async (page) => {
      await open(page, `${desk.origin}/desk/sign-in`);
      await press(page, 'Mail me a link');
    },
    'sign-in-mailed': (page) => open(page, `${desk.origin}/desk/sign-in`),
    'signed-out': async (page) => {
      // Else signing in again ends the session of the other states.
      await page.context().clearCookies();
      await open(page, desk.links[0]);
      await press(page, 'Sign in');
      await press(page, 'Sign out', page);
    },
    'inbox-answered': to('/inbox', (page) => press(page, /Mark as answered/)),
  };
}

/** Of a draft that has no title yet. */
const UNTITLED = 'No heading yet.';

/** With the letters and releases of `publishingDesk`. */
export function publishingDeskStates(desk) {
  const { to } = ways(desk);
  const letter = (subject, next) =>
    to('/letters', async (page) => {
      await follow(page, page.getByRole('link', { name: subject }));
      await next?.(page);
    });
  const draft = (next) => letter('What is new in November', next);
  /** With something that is no disk image, and other fields by their labels. */
  const publish = (next, fields = {}) =>
    to('/releases', async (page) => {
      for (const summary of ['Publish a release', 'Channel, Sparkle and system']) await page.getByText(summary).click();
      await page.getByLabel('Disk image').setInputFiles({ name: 'App.dmg', mimeType: 'application/x-apple-diskimage', buffer: Buffer.from('none') });
      for (const [label, value] of Object.entries({ Version: '1.5.0', ...fields })) await page.getByLabel(label).fill(value);
      await next(page);
    });
  return {
    'letters-full': to('/letters'),
    draft: draft(),
    'draft-saved': draft(async (page) => {
      // It is not saved, because other states show it.
      const answer = { body: '{"saved":1,"at":"12:00"}', contentType: 'application/json' };
      await page.route(page.url(), (route) => route.fulfill(answer), { times: 1 });
      await page.getByLabel('Subject').fill('Another');
      await page.getByText('Saved at 12:00 UTC').waitFor();
    }),
    'draft-not-yet': letter(UNTITLED),
    'draft-send': draft((page) => press(page, 'Send…')),
    'draft-send-not-yet': letter(UNTITLED, (page) => press(page, 'Send…')),
    'draft-delete': draft((page) => follow(page, page.getByRole('link', { name: 'Delete…' }))),
    'letter-sending': letter('Sending it'),
    // What is shown next is another letter.
    'letter-watched-to-its-end': letter('Sending it', async (page) => {
      const sent = new URL('3'.repeat(64), page.url()).href;
      await page.route(page.url(), (route) => route.continue({ url: sent }), { times: 1 });
      await page.locator('#progress').getByText('Sent to 2 people.').waitFor();
    }),
    'letter-stopped': letter('What is <b>new</b>'),
    'letter-not-finished': letter('By hand'),
    'letter-sent': letter('Before'),
    'letter-recipients': letter('Before', (page) => follow(page, page.locator('dt').getByRole('link', { name: 'sent' }))),
    'letter-recipients-refused': letter('What is <b>new</b>', (page) => follow(page, page.getByRole('link', { name: 'refused' }))),
    'releases-full': to('/releases'),
    'releases-publish': publish(() => {}),
    'releases-sending': publish(async (page) => {
      await page.route('**/desk/releases', () => {}, { times: 1 });
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('button', { name: 'Cancel' }).waitFor();
    }),
    'releases-refused': publish(async (page) => {
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('alert').waitFor();
    }),
    // As without JavaScript.
    'releases-refused-plain': publish(
      (page) => Promise.all([page.waitForEvent('load'), page.evaluate(() => document.querySelector('form[data-upload]').submit())]),
      { Notes: '# Fixed', Channel: 'Be ta' },
    ),
    release: to('/release/1.4.0'),
    'release-withdraw': to('/release/1.4.0/withdraw'),
    'release-withdrawn': to('/release/1.3.0'),
  };
}

/** With those of `emptyDesk`. */
export const emptyDeskStates = (desk) => {
  const states = Object.entries(deskStates(desk));
  const empty = ['overview', 'inbox', 'inbox-all', 'inbox-waiting', 'inbox-failed', 'people', 'people-suppressed', 'activity'];
  return Object.fromEntries(states.filter(([name]) => empty.includes(name)).map(([name, reach]) => [`empty-${name}`, reach]));
};
