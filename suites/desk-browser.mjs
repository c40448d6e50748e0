// usage: node desk-browser.mjs DESK chromium|firefox
// DESK is what `emptyDesk` of desk-service.mjs gives, as JSON.
// The desk in a real browser: what makers do there, without JavaScript, and the keys that there are with it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { runCases } from './browser-cases.mjs';
import { fill } from './desk-data.mjs';
import { press, search } from './desk-states.mjs';

const [, , json, name] = process.argv;
const desk = JSON.parse(json);
const { launch } = await import(`./${name}.mjs`);

const follow = (page, name, within = page.locator('main')) =>
  Promise.all([page.waitForEvent('load'), within.getByRole('link', { name: new RegExp(`^${name}`) }).first().click()]);
const menu = (page, name) => follow(page, name, page.getByRole('navigation', { name: 'Desk' }));
const row = (page, text) => page.locator('.rows > li').filter({ hasText: text });
const expectHeading = async (page, text) => assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), text);
const expectDone = async (page, words) => assert.match(await page.getByRole('status').innerText(), words);

async function signIn(page) {
  await page.goto(desk.links.shift());
  await press(page, 'Sign in');
  await expectHeading(page, 'Overview');
}
async function signOut(page) {
  await press(page, 'Sign out', page);
  await expectDone(page, /signed out/);
}

/** Messages from people who are new, each with a word that no other has. */
async function write(count) {
  const writers = Array.from({ length: count }, () => crypto.randomUUID().slice(0, 13));
  const messages = writers.map((word) => ({ name: `Writer ${word}`, email: `${word}@example.com`, message: `Hello ${word}` }));
  await fill(desk.base, { messages });
  return messages;
}

const withoutJavaScript = async ({ page }) => {
  const [first, second] = await write(2);
  await fill(desk.base, { people: [{ email: first.email, updates: true }] });
  await signIn(page);

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
  assert.equal(download.suggestedFilename(), 'person.json');
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

/** Whether the element with the focus shows it. */
const showsFocus = (page) =>
  page.evaluate(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  });
const expectFocus = async (page, locator, what) => {
  assert.ok(await locator.evaluate((element) => element === document.activeElement), `${what} does not have the focus`);
  assert.ok(await showsFocus(page), `${what} has the focus and does not show it`);
};
const key = (page, name) => page.keyboard.press(name);
const opening = (page, name) => Promise.all([page.waitForEvent('load'), key(page, name)]);

const byKeys = async ({ page }) => {
  const messages = await write(4);
  await signIn(page);
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

  await key(page, 'j');
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

const tabbing = async ({ page }) => {
  await write(1);
  await signIn(page);
  await menu(page, 'Inbox');
  const seen = [];
  for (let presses = 0; presses < 60 && !seen.includes('Mark as answered'); presses += 1) {
    await key(page, 'Tab');
    const [text, tag] = await page.evaluate(() => [document.activeElement.innerText.split(':')[0].trim(), document.activeElement.localName]);
    assert.ok(await showsFocus(page), `the focus is not seen on ${tag}: ${text}`);
    seen.push(tag === 'input' ? 'search' : text);
  }
  for (const each of ['Skip to content', 'People', 'Sign out', 'search', 'Failed', 'Mark as answered'])
    assert.ok(seen.some((text) => text.includes(each)), `Tab leads to ${seen.join(', ')}, and not to ${each}`);
  await signOut(page);
};

/** A file with the trailer of a disk image. */
function diskImage(bytes) {
  const image = Buffer.alloc(bytes + 512, 7);
  image.fill(0, bytes);
  image.write('koly', bytes);
  image.writeBigUInt64BE(BigInt(bytes), bytes + 0x20);
  return { name: 'Troupe.dmg', mimeType: 'application/x-apple-diskimage', buffer: image };
}

const publishing = async ({ page }) => {
  const said = page.locator('[data-failure]');
  const sent = [];
  page.on('response', (answer) => {
    if (answer.request().method() === 'POST' && answer.url().endsWith('/desk/releases')) sent.push(answer.status());
  });
  const refuse = async (words) => {
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.waitForFunction((words) => document.querySelector('[data-failure]:not([hidden])')?.textContent.includes(words), words);
  };
  await signIn(page);
  const begin = async (version, notes) => {
    await menu(page, 'Releases');
    await page.locator('.publish').evaluate((details) => (details.open = true));
    await page.getByLabel('Version').fill(version);
    await page.getByLabel('Notes', { exact: true }).fill(notes);
  };
  await begin('one.four', 'Faster');
  await page.getByLabel('Disk image').setInputFiles({ name: 'Troupe.dmg', mimeType: '', buffer: Buffer.alloc(100_000) });
  await refuse('The version cannot be used');
  await page.getByLabel('Version').fill('9.0.0');
  await refuse('is not a disk image');
  assert.deepEqual(sent, [422, 422], 'the image was sent');
  await page.getByLabel('Disk image').setInputFiles(diskImage(100_000));

  // All of it is sent after the fields and the end of it: until it has arrived, leaving asks.
  const held = new Promise((begun) => page.route('**/desk/releases', (route) => (sent.length < 3 ? route.continue() : begun())));
  await page.getByRole('button', { name: 'Publish' }).click();
  await held;
  const [dialog] = await Promise.all([
    page.waitForEvent('dialog').then(async (dialog) => (await dialog.dismiss(), dialog)),
    page.getByRole('link', { name: 'People' }).click({ noWaitAfter: true }),
  ]);
  assert.equal(dialog.type(), 'beforeunload');
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.match(await said.innerText(), /was cancelled/);
  assert.ok(!(await said.getAttribute('class')).includes('failing'), 'a cancelled upload is no failure');
  await page.unroute('**/desk/releases');
  await press(page, 'Publish');
  await expectDone(page, /is published/);

  await begin('9.0.0', 'Much faster');
  await page.getByLabel('Disk image').setInputFiles(diskImage(100_000));
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.getByRole('heading', { name: 'Release 9.0.0' }).waitFor();
  assert.match(await page.getByRole('alert').innerText(), /was published before, with the same image/);
  await page.frameLocator('iframe').getByText('Much faster').waitFor();
  await press(page, 'Save');
  await expectDone(page, /was changed/);
  assert.equal(await page.getByLabel('Notes', { exact: true }).inputValue(), 'Much faster');
  await signOut(page);
};

await runCases(await launch(), desk.origin, undefined, {
  'everything works without JavaScript': { javaScriptEnabled: false, run: withoutJavaScript },
  'an image is checked before it is sent': { refused: ['/desk/releases'], run: publishing },
  'by keys': byKeys,
  'by Tab, and the focus is seen': tabbing,
});
