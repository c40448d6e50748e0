// usage: node screen-reader.mjs BASE_URL MAILED DESK PUBLISHING_DESK [--record]
// MAILED is what `mailedPages` of mailed.mjs gives, as JSON, and the desks what functions of these names in desk-service.mjs give,
// DESK that of `smallDesk`.
// Every page and every state of the forms and of the desk, as a screen reader reads it, is what the files in screen-reader/ say;
// --record writes them. Names that are missing and headings that skip a level are findings whatever is recorded.
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { noteAnnouncements, readAloud } from './aloud.mjs';
import { launch, open } from './chromium.mjs';
import { deskStates, publishingDeskStates } from './desk-states.mjs';
import { mailedStates, PLAIN_STATES, STATES, withoutScript } from './states.mjs';

const [, , base, mailed, ...rest] = process.argv;
const [desk, publishing] = rest.slice(0, 2).map((json) => JSON.parse(json));
const record = rest[2];
const RECORDED = join(import.meta.dirname, 'screen-reader');
const WORKERS = 2;
const PATIENCE = 10_000;
/** What differs from run to run. */
const DIFFERING = [
  [base, 'https://troupe.example'],
  [desk.base, 'https://troupe.example'],
  [/(?<=Saved at )\d\d:\d\d(?= UTC)/g, 'TIME'],
  [/20\d\d-\d\d-\d\dT[\d:]+Z/g, 'TIME'],
  [/(?<!\d)(20\d\d-\d\d-\d\d|\d{1,2} [A-Z][a-z]+ 20\d\d)\b/g, 'DATE'],
  [/DATE, \d\d:\d\d UTC/g, 'TIME'],
  [/(?<=message |reference |\[link: )[0-9a-f]{8}\b/gi, 'REFERENCE'],
];
/** These say how much room a disk has, and what was counted by chance. */
const NOT_READ = ['check', 'overview'];

/** Waits until everything that the page does in the next frames is done. */
const frames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Brings a page into a state and reads it. */
async function listen(browser, reach, scripted = true) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  try {
    context.setDefaultTimeout(PATIENCE);
    if (!scripted) await withoutScript(context);
    await context.addInitScript(noteAnnouncements);
    const page = await context.newPage();
    // The page says that it is working before the answer comes.
    await context.route('**/api/*', async (route) => {
      await frames(page);
      await route.continue();
    });
    await reach(page, base);
    await frames(page);
    const { text, findings } = await readAloud(page);
    return { text: constant(text), findings };
  } finally {
    await context.close();
  }
}

const constant = (text) => DIFFERING.reduce((text, [pattern, word]) => text.replaceAll(pattern, word), text);

const difference = (name, text) => {
  const recorded = join(RECORDED, `${name}.txt`);
  try {
    execFileSync('diff', ['-u', '-N', '--label', `recorded ${name}`, '--label', `read ${name}`, recorded, '-'], { input: text, encoding: 'utf8' });
    return '';
  } catch (error) {
    return error.stdout;
  }
};

const browser = await launch();
const findings = [];
const states = [
  ...Object.entries(STATES).map(([name, reach]) => [name, reach, true]),
  ...Object.entries(PLAIN_STATES).map(([name, reach]) => [`plain-${name}`, reach, false]),
  ...Object.entries(mailedStates(JSON.parse(mailed))).map(([name, reach]) => [name, reach, true]),
  ...Object.entries({ ...deskStates(desk), ...publishingDeskStates(publishing) })
    .filter(([name]) => !NOT_READ.includes(name)).map(([name, reach]) => [`desk-${name}`, reach, true]),
];
if (record) {
  await rm(RECORDED, { recursive: true, force: true });
  await mkdir(RECORDED);
}
const waiting = [...states];
await Promise.all(
  Array.from({ length: WORKERS }, async () => {
    for (let state = waiting.shift(); state; state = waiting.shift()) {
      const [name, reach, scripted] = state;
      const read = await listen(browser, reach, scripted);
      if (record) await writeFile(join(RECORDED, `${name}.txt`), read.text);
      findings.push(...read.findings.map((finding) => `${name}: ${finding}`));
      const changed = difference(name, read.text);
      if (changed) findings.push(changed);
    }
  }),
);
const known = states.map(([name]) => `${name}.txt`);
for (const file of await readdir(RECORDED)) if (!known.includes(file)) findings.push(`screen-reader/${file} is of no state`);

// The control: without its label a field has no name, and the text is another one.
const unlabelled = await listen(browser, async (page) => {
  await open(page, `${base}/contact`);
  await page.evaluate(() => document.querySelector('label[for=email]').remove());
});
if (!unlabelled.findings.some((finding) => finding.includes('textbox without a name'))) findings.push('a missing label is not noticed');
if (!difference('contact', unlabelled.text).includes('-')) findings.push('a missing label leaves the text as it was');

await browser.close();
console.log([...findings, `${states.length} states`].join('\n'));
if (findings.length) process.exitCode = 1;
