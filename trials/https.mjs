// Opens every page in Chromium over HTTP/2, and orders a download by the form; used by trials/https.
// The root of the certificate has to be in the NSS database of the home folder.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { submit, type } from '../suites/browser-cases.mjs';
import { launch, open } from '../suites/chromium.mjs';
import { PAGES } from '../suites/pages.mjs';

const [base, checksum] = process.argv.slice(2);
const findings = [];
const browser = await launch();
const context = await browser.newContext({ baseURL: base, reducedMotion: 'reduce' });
const page = await context.newPage();
let at = '/';
page.on('console', (message) => findings.push(`${at}: the console says ${message.text()}`));
page.on('pageerror', (error) => findings.push(`${at}: ${error.message}`));
page.on('requestfailed', (request) => {
  // The browser itself aborts a navigation that becomes a download, and the icon of a page that it leaves.
  const { errorText } = request.failure();
  if (errorText !== 'net::ERR_ABORTED') findings.push(`${request.url()}: ${errorText}`);
});

/** How each part of the page was transferred, by address; what came from the cache has no protocol. */
const protocols = () =>
  page.evaluate(() =>
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .filter((entry) => entry.transferSize > 0)
      .map((entry) => [entry.name, entry.nextHopProtocol]));

async function expectPage(path) {
  const answer = await open(page, path);
  if (answer.status() !== 200) findings.push(`${path}: ${answer.status()}`);
  const used = await protocols();
  if (!used.length) findings.push(`${path}: the browser says of nothing how it was transferred`);
  for (const [name, protocol] of used) if (protocol !== 'h2') findings.push(`${name} came over ${protocol || 'nothing'}`);
}

async function expectDownload() {
  await page.goto('/');
  await type(page, { email: 'browser@example.com' });
  const [download] = await Promise.all([page.waitForEvent('download'), submit(page).click()]);
  const sum = createHash('sha256').update(await readFile(await download.path())).digest('hex');
  if (sum !== checksum) findings.push(`${download.url()} is not the image`);
}

const paths = Object.entries(PAGES).filter(([name]) => name !== 'not-found').map(([, path]) => path);
try {
  for (at of paths) await expectPage(at);
  await expectDownload();
} catch (error) {
  findings.push(error.message);
}
await browser.close();
for (const finding of findings) console.log(finding);
console.log(`${paths.length} pages in Chromium, and a download`);
if (findings.length) process.exitCode = 1;
