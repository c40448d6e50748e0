// usage: node new-site.mjs BASE_URL NAME
// The site that `porchlight new` made for an app of this name, in a browser: every page and both forms speak of that app alone.
import { launch, open } from './chromium.mjs';
import { judge } from './judge.mjs';
import { PAGES } from './pages.mjs';

const [, , base, name] = process.argv;
/** Words of the app whose site is built in. */
const OTHER_APP = /troupe|\bbots?\b|coding.agent|approval gate|\b(scout|quill|tally)\b/i;

const browser = await launch();
const context = await browser.newContext({ reducedMotion: 'reduce' });
const page = await context.newPage();
const findings = [];
page.on('console', (message) => {
  const expected = message.text().includes('404') && page.url().endsWith(PAGES['not-found']);
  if (!expected) findings.push(`${page.url()}: ${message.text()}`);
});
page.on('requestfailed', (request) => {
  // The browser itself aborts a navigation that becomes a download, and the icon of a page that it leaves.
  const { errorText } = request.failure();
  if (errorText !== 'net::ERR_ABORTED') findings.push(`${page.url()}: ${request.url()}: ${errorText}`);
});

/** What is seen, and what is said to those who do not see. */
const words = () =>
  page.evaluate(() => {
    const said = [...document.querySelectorAll('[aria-label], [alt], [title], meta[content]')];
    const attributes = ['aria-label', 'alt', 'title', 'content'].flatMap((key) => said.map((element) => element.getAttribute(key) ?? ''));
    return [document.title, document.body.innerText, ...attributes].join('\n');
  });

async function look(where) {
  const text = await words();
  const other = OTHER_APP.exec(text);
  if (other) findings.push(`${where} says “${other[0]}”`);
  if (!text.includes(name)) findings.push(`${where} does not name ${name}`);
  findings.push(...(await judge(page, where)));
}

/** Whether pictures have the proportions of their files. */
async function lookAtProportions(where) {
  const stretched = await page.evaluate(() =>
    [...document.querySelectorAll('.hero img')].filter((image) => {
      const { width, height } = image.getBoundingClientRect();
      return Math.abs(width / height - image.naturalWidth / image.naturalHeight) > 0.02;
    }).length);
  if (stretched) findings.push(`${where}: the picture is stretched`);
}

for (const [where, path] of Object.entries(PAGES)) {
  await open(page, base + path);
  await look(where);
}
for (const width of [390, 1280]) {
  await page.setViewportSize({ width, height: 900 });
  await open(page, `${base}/`);
  await lookAtProportions(`home, ${width} pixels wide`);
}
await open(page, `${base}/`);
await page.locator('main form [name=email]').fill('ada@example.com');
const [started] = await Promise.all([page.waitForEvent('download'), page.locator('main form [type=submit]').click()]);
if (!started.suggestedFilename().startsWith('Tea-Time-')) findings.push(`the download is called ${started.suggestedFilename()}`);
await started.cancel();
await page.locator('main [role=status]').waitFor();
await look('a started download');
await open(page, `${base}/contact`);
for (const [field, value] of Object.entries({ name: 'Ada', email: 'ada@example.com', message: 'Hello there' }))
  await page.locator(`main form [name=${field}]`).fill(value);
await page.locator('main form [type=submit]').click();
await page.locator('main [role=status]').waitFor();
await look('a message sent');
await browser.close();
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
