// What a visitor can bring the site into: every page, and every state of the forms.
import { open, settle } from './chromium.mjs';
import { PAGES } from './pages.mjs';

/** Fills in the form of a page and sends it. */
const send = async (page, base, path, fields) => {
  await open(page, base + path);
  for (const [name, value] of Object.entries(fields)) await page.locator(`main form [name=${name}]`).fill(value);
  await page.locator('main form [type=submit]').click();
};
const shown = (page, selector) => page.locator(selector).first().waitFor();
const done = (page) => shown(page, 'main [role=status]');
const refused = (page, field) => shown(page, `[name=${field}][aria-invalid=true]`);

/** By name, a function that brings a browser's page there. */
export const STATES = {
  ...Object.fromEntries(Object.entries(PAGES).map(([name, path]) => [name, (page, base) => open(page, base + path)])),
  'download-in-place-refused': async (page, base) => {
    await send(page, base, '/', { email: 'nobody' });
    await refused(page, 'email');
  },
  'download-in-place-started': async (page, base) => {
    await send(page, base, '/', { email: `${crypto.randomUUID()}@example.com` });
    await done(page);
  },
  'download-in-place-known': async (page, base) => {
    for (const _ of ['first', 'again']) {
      await send(page, base, '/', { email: 'known@example.com' });
      await done(page);
    }
  },
  'contact-in-place-refused': async (page, base) => {
    await send(page, base, '/contact', { name: 'Ada', email: 'ada@example.com', message: ' ' });
    await refused(page, 'message');
  },
  'contact-in-place-over': async (page, base) => {
    await open(page, `${base}/contact`);
    await page.locator('main form [name=message]').fill('x'.repeat(4001));
  },
  'contact-in-place-sent': async (page, base) => {
    await send(page, base, '/contact', { name: 'Ada', email: 'ada@example.com', message: 'Hello' });
    await done(page);
  },
};

/** The same without the site's script; what is typed a browser itself lets through and the service refuses. */
export const PLAIN_STATES = {
  'download-refused': async (page, base) => {
    await send(page, base, '/', { email: 'nobody@localhost' });
    await refused(page, 'email');
    await settle(page);
  },
  'contact-refused': async (page, base) => {
    await send(page, base, '/contact', { email: 'nobody@localhost', message: 'Hello' });
    await refused(page, 'email');
    await settle(page);
  },
};

/** The pages that links in mail lead to, and what their buttons answer with; each with a link of its own. And the archive. */
export const mailedStates = ({ base, confirm, unsubscribe, letter }) => {
  const press = async (page, path, button) => {
    await open(page, base + path);
    await page.getByRole('button', { name: button }).click();
    await settle(page);
  };
  return {
    confirm: (page) => open(page, base + confirm[0]),
    confirmed: (page) => press(page, confirm[1], 'Send me the monthly email'),
    'confirm-never-again': (page) => press(page, confirm[2], 'Never mail this address'),
    'confirm-expired': (page) => open(page, `${base}/confirm/${'0'.repeat(40)}`),
    letters: (page) => open(page, `${base}/letters`),
    letter: (page) => open(page, base + letter),
    unsubscribe: (page) => open(page, base + unsubscribe[0]),
    unsubscribed: (page) => press(page, unsubscribe[1], 'Unsubscribe'),
    'unsubscribe-never-again': async (page) => {
      await open(page, base + unsubscribe[2]);
      await page.getByRole('checkbox').check();
      await page.getByRole('button').click();
      await settle(page);
    },
  };
};

/** Keeps the site's own script away; programs that look at the page may still bring theirs. */
export const withoutScript = (context) => context.route(({ pathname }) => pathname.endsWith('.js'), (route) => route.abort());
