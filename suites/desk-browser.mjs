// usage: node desk-browser.mjs DESK OTHER_DESK chromium|firefox
// The desks are what `sendingDesk` of desk-service.mjs gives, as JSON.
// The desk in a real browser: what makers do there, without JavaScript, and what there is with it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { runCases } from './browser-cases.mjs';
import { fill } from './desk-data.mjs';
import { letters, lettersPlain } from './desk-letters.mjs';
import { releasesOverLine, releasesPlain } from './desk-releases.mjs';
import { press, search } from './desk-states.mjs';
import { expectDone, expectFocus, expectHeading, expectTabs, follow, key, menu, opening, row, signIn, signOut } from './desk-steps.mjs';

const [, , ...args] = process.argv;
const name = args.pop();
const [desk, other] = args.map((json) => JSON.parse(json));
const { launch } = await import(`./${name}.mjs`);

/** Messages from people who are new, each with a word that no other has. */
async function receive(desk, count) {
  const writers = Array.from({ length: count }, () => crypto.randomUUID().slice(0, 13));
  const messages = writers.map((word) => ({ name: `Writer ${word}`, email: `${word}@example.com`, message: `Hello ${word}` }));
  await fill(desk.base, { messages });
  return messages;
}

const withoutJavaScript = async ({ page, desk }) => {
  const [first, second] = await receive(desk, 2);
  await fill(desk.base, { people: [{ email: first.email }] });
  await signIn(page, desk);

  await menu(page, 'Inbox');
  await page.keyboard.press('/');
  assert.equal(await page.locator('input:focus').count(), 0, 'the script is there');
  await search(page, first.message);
  assert.equal(await page.locator('.rows > li').count(), 1);
  await row(page, first.name).getByRole('link').click();
  await page.getByRole('heading', { name: first.name }).waitFor();
  await press(page, 'Mark as answered');
  await expectDone(page, /marked as answered/);
  assert.equal(await row(page, first.name).count(), 0, 'an answered message is among the unanswered ones');
  await follow(page, 'All');
  assert.match(await row(page, first.name).innerText(), /\banswered/);

  await row(page, second.name).getByRole('link').click();
  await follow(page, 'Discard…');
  await expectHeading(page, 'Discard this message?');
  await follow(page, 'Cancel');
  await expectHeading(page, second.name);
  await follow(page, 'Discard…');
  await press(page, 'Discard the message');
  await expectDone(page, /was deleted/);
  await search(page, second.message);
  await page.getByText('No message has this').waitFor();

  await menu(page, 'People');
  await search(page, first.email);
  await row(page, first.email).getByRole('link').click();
  await page.getByRole('heading', { name: first.email }).waitFor();
  await press(page, 'Suppress');
  await expectDone(page, /is suppressed/);
  await press(page, 'Allow mail again');
  await expectDone(page, /no longer suppressed/);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download as JSON' }).click()]);
  assert.match(download.suggestedFilename(), /^person-\d{4}-\d\d-\d\d\.json$/);
  assert.equal(JSON.parse(await readFile(await download.path(), 'utf8')).email, first.email);
  await press(page, 'Erase…');
  await expectHeading(page, 'Erase this person?');
  await follow(page, 'Cancel');
  await expectHeading(page, first.email);
  await press(page, 'Erase…');
  await press(page, 'Erase the person');
  await expectHeading(page, 'The person was erased');
  await follow(page, 'To the list of people');
  await search(page, first.email);
  assert.equal(await row(page, first.email).count(), 0, 'an erased person is in the list');

  await menu(page, 'Site');
  await press(page, 'Read the site again');
  await expectDone(page, /is read again/);
  await menu(page, 'Activity');
  assert.match(await page.locator('.rows').innerText(), /ada.*\n?.*site/i);
  await signOut(page);
  await page.goto('/desk/inbox');
  await expectHeading(page, 'Sign in');
};

const byKeys = async ({ page, desk }) => {
  const messages = await receive(desk, 4);
  await signIn(page, desk);
  await menu(page, 'Inbox');
  const links = page.locator('.rows > li p a');
  await key(page, 'j');
  await expectFocus(page, links.nth(0), 'the first row');
  await key(page, 'k');
  await expectFocus(page, links.nth(0), 'the first row');
  await key(page, 'j');
  await key(page, 'j');
  await expectFocus(page, links.nth(2), 'the third row');
  await key(page, 'k');
  await expectFocus(page, links.nth(1), 'the second row');
  const marked = await links.nth(1).locator('b').innerText();
  await opening(page, 'e');
  await expectDone(page, /marked as answered/);
  assert.equal(await row(page, marked).count(), 0, 'e did not mark the row that had the focus');
  await expectFocus(page, links.nth(1), 'the row after the one that was marked');
  await press(page, 'Undo');
  await expectFocus(page, row(page, marked).getByRole('link'), 'the row that is no longer marked');
  await opening(page, 'e');

  await key(page, 'k');
  const opened = await links.nth(0).locator('b').innerText();
  await opening(page, 'Enter');
  await expectHeading(page, opened);
  await opening(page, 'e');
  await expectDone(page, /marked as answered/);
  assert.equal(await row(page, opened).count(), 0, 'e did not mark the message that is read');

  // Where somebody types, the keys are letters.
  await key(page, '/');
  const field = page.getByRole('searchbox');
  await expectFocus(page, field, 'the search');
  await page.keyboard.type('jke/');
  await expectFocus(page, field, 'the search');
  assert.equal(await field.inputValue(), 'jke/');
  const left = messages.filter(({ name }) => ![marked, opened].includes(name));
  await field.fill(left[0].email);
  await opening(page, 'Enter');
  assert.deepEqual(await links.locator('b').allInnerTexts(), [left[0].name]);
  // No other keys are taken from the browser.
  await key(page, 'Control+j');
  assert.equal(await page.locator('.rows :focus').count(), 0, 'Control+j moves');
  // On the row of a search nothing is marked.
  await key(page, 'j');
  await key(page, 'e');
  await expectFocus(page, links.nth(0), 'the row that was found');
  await signOut(page);
};

const tabbing = async ({ page, desk }) => {
  await receive(desk, 1);
  await signIn(page, desk);
  for (const name of ['Inbox', 'People', 'Site', 'Activity']) {
    await menu(page, name);
    await expectTabs(page);
  }
  await menu(page, 'Inbox');
  await row(page, 'Writer').first().getByRole('link').click();
  await page.getByRole('link', { name: 'Discard…' }).waitFor();
  await expectTabs(page);
  await signOut(page);
};

const plain = { javaScriptEnabled: false };
/** Cases at either desk: those that change what all cases of a desk see are at different ones. */
const at = (desk, cases) =>
  Object.entries(cases).map(([name, { run, ...settings }]) => [name, { origin: desk.origin, run: (browser) => run({ ...browser, desk }), ...settings }]);
await runCases(await launch(), desk.origin, undefined, Object.fromEntries([
  ...at(other, { letters, 'by keys': { run: byKeys } }),
  ...at(desk, {
    'inbox and people without JavaScript': { ...plain, run: withoutJavaScript },
    'letters without JavaScript': { ...plain, ...lettersPlain },
    'releases without JavaScript': { ...plain, ...releasesPlain },
    'by Tab, and the focus is seen': { run: tabbing },
  }),
  ...at(other, { releases: await releasesOverLine(other) }),
]));
