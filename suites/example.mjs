// usage: node example.mjs BASE_URL
// The site of the example in docs/site.md, in a browser: its pages, its colors, and its French home page with a form that was refused.
import { launch, open } from './chromium.mjs';
import { judge } from './judge.mjs';

const [, , base] = process.argv;
const browser = await launch();
const page = await (await browser.newContext({ reducedMotion: 'reduce' })).newPage();
const findings = [];
const expect = (what, seen, wanted) => {
  if (seen !== wanted) findings.push(`${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
};
const color = (element, property) => page.locator(element).first().evaluate((it, name) => getComputedStyle(it)[name], property);

await open(page, `${base}/`);
expect('the heading of the home page', await page.locator('h1').innerText(), 'A timer that knows your teas');
expect('the background', await color('body', 'backgroundColor'), 'rgb(255, 250, 242)');
expect('the text', await color('body', 'color'), 'rgb(43, 26, 14)');
expect('the navigation', await page.locator('nav[aria-label=Site] a').first().innerText(), 'Questions');
findings.push(...(await judge(page, 'home')));

for (const [path, heading, link] of [['/faq', 'Questions', '/contact'], ['/terms', 'Terms', '/privacy']]) {
  await page.emulateMedia({ colorScheme: 'light' });
  await open(page, base + path);
  expect(path, await page.locator('h1').innerText(), heading);
  expect(`the link of ${path}`, await page.locator(`main a[href="${link}"]`).count(), 1);
  expect(`the line below that link`, await color(`main a[href="${link}"]`, 'textDecorationColor'), 'rgb(122, 62, 18)');
  findings.push(...(await judge(page, path)));
}
expect('search engines at /terms', await page.locator('meta[name=robots]').getAttribute('content'), 'noindex');
expect('where /help leads', (await open(page, `${base}/help`)).url(), `${base}/faq`);

await open(page, `${base}/fr`);
expect('the language of /fr', await page.locator('html').getAttribute('lang'), 'fr');
expect('the alternate of /fr', await page.locator('link[hreflang=en]').getAttribute('href'), `${base}/`);
expect('the link to English', await page.locator('footer a[lang=en]').getAttribute('href'), '/');
findings.push(...(await judge(page, 'the French home page')));
const form = page.locator('main form').first();
await form.locator('[name=email]').fill('nobody');
await form.evaluate((it) => (it.noValidate = true));
await form.locator('[type=submit]').click();
await page.locator('[aria-invalid=true]').first().waitFor();
expect('the language of the refused form', await page.locator('html').getAttribute('lang'), 'fr');
findings.push(...(await judge(page, 'the refused French form')));
await browser.close();
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
