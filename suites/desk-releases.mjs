// Releases at the desk: published, changed, withdrawn and put back. What people can download is what was sent.
import assert from 'node:assert/strict';
import { press } from './desk-states.mjs';
import {
  expectDone, expectFields, expectFocus, expectHeading, expectTabs, follow, key, menu, opening, row, signIn, signOut, tabTo, until, write,
} from './desk-steps.mjs';
import { Line } from './line.mjs';

const TRAILER = 'koly'.padEnd(512, '\0');
const SMALL = { name: 'Troupe.dmg', mimeType: 'application/x-apple-diskimage', buffer: Buffer.concat([Buffer.alloc(100_000, 'a'), Buffer.from(TRAILER)]) };
/** More than a line holds that nobody reads from. */
const LARGE = 16_000_000;
const RELEASE = { Version: '1.5.0', Notes: '# Sooner\n\nWindows open **at once**.' };

const asked = async (desk, path) => (await fetch(desk.base + path)).text();
const preview = (page) => page.frameLocator('iframe[title="Preview of the notes"]');
const summary = (page, name) => page.locator('summary').filter({ hasText: name });
const button = (page, name) => page.locator('main').getByRole('button', { name });

/** The image of the release that a page shows, as people download it. */
const downloaded = async (desk, path) => {
  const answer = await fetch(desk.base + path);
  return answer.ok ? Buffer.from(await answer.arrayBuffer()) : Buffer.from(`${answer.status}`);
};
const pathOfImage = async (page) => new URL(await page.getByRole('link', { name: /\.dmg$/ }).getAttribute('href')).pathname;

async function withoutJavaScript({ page, desk }) {
  await signIn(page, desk);
  await menu(page, 'Releases');
  const openForm = async () => {
    for (const name of ['Publish a release', 'Channel, Sparkle and system'])
      if (!(await summary(page, name).evaluate((element) => element.parentElement.open))) await summary(page, name).click();
  };
  await openForm();
  await write(page, RELEASE);
  await button(page, 'Preview the notes').click();
  await preview(page).getByText('at once').waitFor();
  // What was typed is kept, and the sentence says what to do.
  const refusals = [
    ['Minimum macOS', 'Sonoma', SMALL, /The minimum macOS cannot be used/],
    ['Minimum macOS', '14.0', { ...SMALL, buffer: Buffer.alloc(2000) }, /not a disk image/],
    ['Version', '1.3.0', SMALL, /already published; choose a higher one/],
  ];
  for (const [label, value, image, why] of refusals) {
    await write(page, { ...RELEASE, [label]: value });
    await page.getByLabel('Disk image').setInputFiles(image);
    await press(page, 'Publish');
    assert.match(await page.getByRole('alert').first().innerText(), why);
    await expectFields(page, { ...RELEASE, [label]: value });
    await openForm();
  }
  await write(page, { ...RELEASE, 'Minimum macOS': '14.0' });
  await page.getByLabel('Disk image').setInputFiles(SMALL);
  await press(page, 'Publish');
  await expectDone(page, /is published/);
  await expectHeading(page, 'Release 1.5.0');
  assert.match(await page.locator('.facts').innerText(), /Minimum macOS\s+14\.0/);
  const path = await pathOfImage(page);
  await until(() => downloaded(desk, path), (image) => image.equals(SMALL.buffer));

  await expectFields(page, { Notes: RELEASE.Notes });
  await press(page, 'Save');
  assert.match(await page.getByRole('alert').innerText(), /Nothing was changed/);
  await write(page, { Notes: '# Sooner still' });
  await press(page, 'Save');
  await expectDone(page, /was changed/);
  await until(() => asked(desk, '/releases'), (html) => html.includes('Sooner still'));

  await follow(page, 'Withdraw…');
  await expectHeading(page, 'Withdraw this release?');
  await follow(page, 'Cancel');
  await follow(page, 'Withdraw…');
  await write(page, { 'Why, for everybody to read': 'It lost <b>routines</b>.' });
  await press(page, 'Withdraw the release');
  await expectDone(page, /nobody can download it/);
  assert.match(await page.locator('.facts').innerText(), /It lost <b>routines<\/b>\./);
  await until(() => downloaded(desk, path), (image) => image.length < 10);
  await until(() => asked(desk, '/releases'), (html) => html.includes('It lost routines.'));
  await menu(page, 'Releases');
  assert.match(await row(page, '1.5.0').innerText(), /It lost <b>routines<\/b>\.\s+withdrawn/);
  await row(page, '1.5.0').getByRole('link').click();
  await page.getByRole('heading', { name: 'Release 1.5.0' }).waitFor();
  await press(page, 'Put back');
  await expectDone(page, /offered again/);
  await until(() => downloaded(desk, path), (image) => image.equals(SMALL.buffer));
  await signOut(page);
}

/** Drops a disk image on the page, as from a folder. */
const drop = (page) =>
  page.evaluate(([size, trailer]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([new Uint8Array(size), trailer], 'Troupe.dmg'));
    for (const kind of ['dragover', 'drop']) document.querySelector('h1').dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  }, [LARGE, TRAILER]);

const withJavaScript = (line) => async ({ page, desk }) => {
  const failed = (words) => page.getByRole('alert').getByText(words).waitFor();
  const publish = button(page, 'Publish');
  await signIn(page, desk);
  await menu(page, 'Releases');
  await key(page, 'j');
  await expectFocus(page, row(page, '1.4.0').getByRole('link'), 'the first row');
  await opening(page, 'Enter');
  await expectHeading(page, 'Release 1.4.0');
  await tabTo(page, summary(page, 'Channel'));
  await key(page, 'Enter');
  await expectTabs(page);
  await tabTo(page, page.getByLabel('Notes'));
  await page.keyboard.type('Shown *as it is typed*. ');
  await preview(page).locator('em').getByText('as it is typed').waitFor();
  await expectFocus(page, page.getByLabel('Notes'), 'the text that is typed');
  await tabTo(page, button(page, 'Save'));
  await opening(page, 'Enter');
  await expectDone(page, /was changed/);
  await tabTo(page, page.getByRole('link', { name: 'Withdraw…' }));
  await opening(page, 'Enter');
  await expectTabs(page);

  await menu(page, 'Releases');
  await drop(page);
  await expectFocus(page, page.getByLabel('Version'), 'what is still to be said');
  await summary(page, 'Channel').click();
  await expectTabs(page);
  await page.getByLabel('Version').focus();
  await page.keyboard.type('one');
  await key(page, 'Enter');
  await failed(/version cannot be used/);
  await expectFocus(page, page.getByLabel('Version'), 'what cannot be used');
  await write(page, { Version: '1.3.0' });
  await key(page, 'Enter');
  await failed(/already published; choose a higher one/);
  await expectFocus(page, publish, 'the button');
  await write(page, RELEASE);

  // On a slow line.
  line.hold();
  await publish.press('Enter');
  await page.getByText(/^\d+ of 16 MB, about .* left$/).waitFor();
  const [question] = await Promise.all([
    page.waitForEvent('dialog').then(async (dialog) => (await dialog.dismiss(), dialog)),
    page.getByRole('navigation', { name: 'Desk' }).getByRole('link', { name: 'People' }).click({ noWaitAfter: true }),
  ]);
  assert.equal(question.type(), 'beforeunload');
  await button(page, 'Cancel').focus();
  await key(page, 'Enter');
  await failed('The upload was cancelled. Nothing was published.');
  assert.equal(await page.locator('[data-failure]').getAttribute('class'), 'of', 'a cancelled upload is no failure');
  await expectFocus(page, publish, 'the button');
  line.cut();
  await key(page, 'Enter');
  await failed(/^The connection was lost, and nothing was published/);
  line.open();
  await expectFields(page, RELEASE);
  await opening(page, 'Enter');
  await expectDone(page, /is published/);
  await expectHeading(page, 'Release 1.5.0');
  const path = await pathOfImage(page);
  const image = await until(() => downloaded(desk, path), ({ length }) => length > 10);
  assert.ok(image.equals(Buffer.concat([Buffer.alloc(LARGE), Buffer.from(TRAILER)])), 'the image is another one');

  // The same once more, with other notes.
  await menu(page, 'Releases');
  await drop(page);
  await write(page, { ...RELEASE, Notes: 'Much sooner' });
  await publish.press('Enter');
  await page.getByRole('heading', { name: 'Release 1.5.0' }).waitFor();
  await failed(/was published before, with the same image/);
  await expectFields(page, { Notes: 'Much sooner' });
  await preview(page).getByText('Much sooner').waitFor();
  await press(page, 'Save');
  await expectDone(page, /was changed/);
  await signOut(page);
};

export const releasesPlain = { refused: ['/desk/releases', '/desk/release/1.5.0'], run: withoutJavaScript };
/** Over a line of its own. */
export async function releasesOverLine({ origin }) {
  const line = await Line.to(origin);
  // What is on its way when the line is cut does not arrive.
  return { origin: line.origin, refused: ['/desk/releases'], meant: /^uncaught: download failed \(font-family/, run: withJavaScript(line) };
}
