// Letters at the desk: written, looked at, tested, sent, stopped and gone on with. What arrives is what was asked for.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fill } from './desk-data.mjs';
import { press } from './desk-states.mjs';
import {
  expectDone, expectFields, expectFocus, expectHeading, expectTabs, follow, key, menu, opening, row, signIn, signOut, tabTo, until, write,
} from './desk-steps.mjs';
import { Mailbox } from './mailed.mjs';

const IMAGE = await readFile(new URL('../content/assets/og.png', import.meta.url));
const STAGE = { name: 'Stage 1.png', mimeType: 'image/png', buffer: IMAGE };
const LETTER = {
  Subject: 'What is new at Troupe', 'Preview line': 'Ada answers sooner',
  'Text, in Markdown': '# Bots that answer sooner\n\nHello & *welcome*.\n\n![A lamp above a small stage](stage-1.png)',
};
/** A letter without a text for those who do not see its image. */
const UNSEEN = { 'Text, in Markdown': LETTER['Text, in Markdown'].replace('A lamp above a small stage', '') };

const preview = (page) => page.frameLocator('iframe[title="The letter as it will arrive"]');
const progress = (page) => page.locator('#progress');
/** How far a letter is, once that is so, for a page that does not say so by itself. */
const untilProgress = (page, words) =>
  until(async () => {
    await page.reload();
    return progress(page).innerText();
  }, (text) => words.test(text));

/** People who get letters, as many as named, and one more at the mailbox of the last one. */
async function subscribe(desk, names) {
  const people = [...names, `${names.at(-1)}+more`].map((name) => ({ email: `${name}@example.com`, updates: true }));
  await fill(desk.base, { people: [...people, { email: `not-${names[0]}@example.com` }] });
}

/** A copy has everything that was asked for. */
function expectCopy(mail, subject) {
  const parts = [
    `Subject: ${subject}\r\n`, 'Ada answers sooner', 'Bots that answer sooner', '\r\nHello & welcome.\r\n', 'Hello &amp; <em>welcome</em>.',
    '[A lamp above a small stage]', 'Troupe, 1 Stage Road', 'List-Unsubscribe: <https://troupe.example/unsubscribe/',
  ];
  for (const part of parts)
    assert.ok(mail.includes(part), `a copy is without ${part}`);
  assert.ok(mail.replaceAll('\r\n', '').includes(IMAGE.toString('base64')), 'the image is another one');
}

/** Everybody has one copy. */
async function expectCopies(mailbox, names, subject) {
  const copies = await mailbox.mails(new RegExp(`^Subject: ${subject}\r`, 'm'), names.length);
  const to = copies.map((mail) => /^To: (\w+)/m.exec(mail)[1]).sort();
  assert.deepEqual(to, [...names].sort());
  for (const copy of copies) expectCopy(copy, subject);
}

async function withoutJavaScript({ page, desk }) {
  const mailbox = await Mailbox.open(undefined, desk.mailPort);
  const readers = ['ada', 'grace', 'joan'];
  await subscribe(desk, readers);
  await signIn(page, desk);
  await menu(page, 'Letters');
  await press(page, 'Write a letter');
  await expectHeading(page, 'Draft: What is new');

  // What cannot be sent is saved all the same, and says why.
  await write(page, { ...LETTER, ...UNSEEN });
  await page.getByLabel('Add images').setInputFiles(STAGE);
  await press(page, /^Save$/);
  await expectDone(page, /draft is saved/);
  await expectFields(page, { ...LETTER, ...UNSEEN });
  assert.match(await page.locator('main').innerText(), /cannot be sent yet: .*stage-1\.png/);
  await press(page, 'Send…');
  assert.match(await page.locator('main').innerText(), /cannot be sent yet: .*stage-1\.png/);
  await page.goBack();

  await write(page, LETTER);
  await press(page, /^Save$/);
  assert.match(await row(page, 'stage-1.png').innerText(), /In the text/);
  await preview(page).getByRole('heading', { name: 'Bots that answer sooner' }).waitFor();
  assert.equal(await preview(page).getByAltText('A lamp above a small stage').evaluate((image) => image.naturalWidth), 1200, 'the image is not seen');

  await press(page, /^Send a test to makers@troupe.example/);
  await expectDone(page, /on its way to you/);
  const [test] = await mailbox.mails(/^Subject: \[Test\]/m, 1);
  assert.match(test, /^To: .*makers@troupe.example/m);
  expectCopy(test, `[Test] ${LETTER.Subject}`);

  await press(page, 'Send…');
  await expectHeading(page, `Send “${LETTER.Subject}”?`);
  assert.match(await page.locator('main').innerText(), /^3 people will get it.* 1 shares the mailbox of another/m);
  await follow(page, 'Back to the draft');
  await expectFields(page, LETTER);
  await press(page, 'Send…');
  const answer = mailbox.hold();
  await press(page, 'Send to 3 people');
  await expectHeading(page, LETTER.Subject);
  await mailbox.mails(/^Subject: What/m, 1);
  await untilProgress(page, /^1 of 4 done/m);
  await press(page, 'Stop');
  answer();
  await until(() => recipients(page, 'sent'), ({ length }) => length === 1);
  assert.match(await progress(page).innerText(), /1 of 4 done, 3 waiting.*waits until somebody goes on/s);
  await expectCopies(mailbox, [(await recipients(page, 'sent'))[0]], LETTER.Subject);
  await press(page, 'Go on');
  await untilProgress(page, /Sent to 3 people/);
  await expectCopies(mailbox, readers, LETTER.Subject);
  assert.deepEqual(await recipients(page, 'sent'), readers);
  assert.equal((await recipients(page, 'skipped')).length, 1);

  await menu(page, 'Letters');
  assert.match(await row(page, LETTER.Subject).innerText(), /to 3 people\s+sent/);
  await press(page, 'Write a letter');
  await follow(page, 'Delete…');
  await follow(page, 'Cancel');
  await follow(page, 'Delete…');
  await press(page, 'Delete the draft');
  await expectDone(page, /draft was deleted/);
  assert.equal(await page.getByRole('heading', { name: 'Drafts' }).count(), 0);
  await signOut(page);
}

const button = (page, name) => page.locator('main').getByRole('button', { name });
/** Types, and waits until that is saved. */
const typing = (page, text) =>
  Promise.all([page.waitForResponse((answer) => answer.request().method() === 'POST' && answer.ok()), page.keyboard.type(text)]);
const said = (page, words) => page.getByRole('status').getByText(words).waitFor();

async function withJavaScript({ page, desk }) {
  const mailbox = await Mailbox.open(undefined, desk.mailPort);
  const readers = ['edith', 'radia'];
  await fill(desk.base, { people: readers.map((name) => ({ email: `${name}@example.com`, updates: true })) });
  await signIn(page, desk);
  await menu(page, 'Letters');
  await tabTo(page, button(page, 'Write a letter'));
  await opening(page, 'Enter');
  const text = page.getByLabel('Text, in Markdown');
  await tabTo(page, page.getByLabel('Subject'));
  await typing(page, LETTER.Subject);
  await tabTo(page, text);
  await key(page, 'ControlOrMeta+a');
  await typing(page, `# Bots that answer sooner\n\nHello & *welcome*.`);
  await preview(page).locator('em').getByText('welcome').waitFor();
  await expectFocus(page, text, 'the text that is typed');
  await page.reload();
  await expectFields(page, { Subject: LETTER.Subject, 'Text, in Markdown': '# Bots that answer sooner\n\nHello & *welcome*.' });

  // An image is put into the text when it is chosen.
  await page.getByLabel('Add images').setInputFiles(STAGE);
  await row(page, 'stage-1.png').getByText('In the text').waitFor();
  await text.evaluate((text) => {
    const place = text.value.indexOf('What it shows](stage-1.png)');
    text.focus();
    text.setSelectionRange(place, place + 'What it shows'.length);
  });
  await typing(page, 'A lamp above a small stage');
  await key(page, 'ControlOrMeta+End');
  await typing(page, '[Elsewhere](https://elsewhere.example/)');
  const image = preview(page).getByAltText('A lamp above a small stage');
  await until(() => image.evaluate((image) => image.naturalWidth).catch(() => 0), (width) => width === 1200);
  await expectTabs(page);

  // What is not saved is said, and not lost.
  await text.focus();
  await page.route(page.url().replace(/\?.*/, ''), (route) => route.abort(), { times: 1 });
  await key(page, 'ControlOrMeta+End');
  await page.keyboard.type(' Soon.');
  await said(page, 'Not saved: the service does not answer. It is tried again.');
  await said(page, /^Saved at/);
  await preview(page).getByText('Soon.').waitFor();
  await page.evaluate(() => {
    // As another window does.
    const fields = new FormData(document.querySelector('#draft'));
    fields.set('subject', 'Somebody else');
    return fetch(location.pathname, { method: 'POST', body: fields });
  });
  await page.keyboard.type(' Sooner.');
  await page.getByRole('alert').getByText(/^This draft was saved in another window/).waitFor();
  assert.match(await text.inputValue(), /Sooner\.$/);

  // A link in the preview leads nowhere, and what is typed then is saved and shown.
  await page.reload();
  await preview(page).getByRole('link', { name: 'Elsewhere' }).click();
  await text.click();
  await key(page, 'ControlOrMeta+End');
  await typing(page, ' At last.');
  await preview(page).getByText('At last.').waitFor();

  await menu(page, 'Letters');
  await expectTabs(page);
  await key(page, 'j');
  await expectFocus(page, row(page, 'Somebody else').getByRole('link'), 'the draft');
  await opening(page, 'Enter');
  await expectHeading(page, 'Draft: Somebody else');
  await tabTo(page, page.getByLabel('Subject'));
  await key(page, 'ControlOrMeta+a');
  // What is being saved is waited for.
  await page.keyboard.type(LETTER.Subject);
  await tabTo(page, button(page, 'Send…'));
  await opening(page, 'Enter');
  await expectHeading(page, `Send “${LETTER.Subject}”?`);
  await expectTabs(page);
  await tabTo(page, button(page, 'Send to 2 people'));
  const answer = mailbox.hold();
  await opening(page, 'Enter');
  const shown = await page.locator('main').elementHandle();
  await progress(page).getByText('1 of 2 done').waitFor();
  await tabTo(page, button(page, 'Stop'));
  const before = await button(page, 'Stop').elementHandle();
  await until(() => before.evaluate((element) => element.isConnected), (is) => !is);
  await expectFocus(page, button(page, 'Stop'), 'the button');
  answer();
  await progress(page).getByText('Sent to 2 people.').waitFor();
  await said(page, 'Sent to 2 people.');
  assert.match(await page.getByRole('region', { name: 'Who got it' }).innerText(), /sent\s+2\s/);
  assert.ok(await shown.evaluate((main) => main === document.activeElement), 'with its button the focus is lost');
  await expectTabs(page);
  await follow(page, 'bounced');
  await expectTabs(page);
  await signOut(page);
}

/** The names of those whom a letter has in this state. Leads back to the letter. */
async function recipients(page, state) {
  await follow(page, state);
  const names = (await page.locator('.rows b').allInnerTexts()).map((email) => /^\w+/.exec(email)[0]);
  await follow(page, LETTER.Subject);
  return names.sort();
}

const OF_DRAFTS = /^\/desk\/letters\/drafts\//;
export const lettersPlain = { refused: [OF_DRAFTS], run: withoutJavaScript };
export const letters = { refused: [OF_DRAFTS], meant: /https:\/\/elsewhere\.example\/|ERR_FAILED|sandboxed/, run: withJavaScript };
