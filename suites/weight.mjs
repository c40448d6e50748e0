// usage: node weight.mjs BASE_URL
// What a page weighs on the wire, how its assets are named, kept and pinned, and what it costs an agent to read.
import { createHash } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import { countTokens } from 'gpt-tokenizer';
import { FIVE } from './pages.mjs';

const base = process.argv[2];
const { get } = base.startsWith('https:') ? https : http;
const PAGE_BUDGET = 30_000; // bytes of HTML and CSS, compressed with brotli
const SCRIPT_BUDGET = 10_000; // bytes of JavaScript, not compressed
const MARKDOWN_SHARE = 0.35; // tokens of the Markdown for one of the HTML
const YEAR = 31_536_000;

/** An answer as it comes over the wire. */
const ask = (address, headers = {}) =>
  new Promise((done, fail) => {
    get(new URL(address, base), { headers }, async (answer) => {
      const chunks = await answer.toArray().catch(fail);
      done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) });
    }).on('error', fail);
  });
const text = async (address, headers) => (await ask(address, headers)).body.toString();
const compressed = async (address) => {
  const { status, headers, body } = await ask(address, { 'Accept-Encoding': 'br' });
  expect(status === 200 && headers['content-encoding'] === 'br', `${address}: ${status}, encoded as ${headers['content-encoding']}`);
  return body.length;
};
const findings = [];
const expect = (holds, finding) => holds || findings.push(finding);
const attribute = (tag, name) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1];
const tags = (html, name) => html.match(new RegExp(`<${name}\\b[^>]*>`, 'g')) ?? [];

/** The addresses on this site that a page or a stylesheet makes a browser fetch. */
function needs(content) {
  const found = [
    ...tags(content, '(?:link|script|img|source|use|image|meta)').flatMap((tag) => {
      if (/^<link/.test(tag) && !/ rel="[^"]*(?:stylesheet|icon|preload|manifest)/.test(tag)) return [];
      if (/^<meta/.test(tag)) return / property="og:image"/.test(tag) ? [attribute(tag, 'content')] : [];
      return [attribute(tag, 'href'), attribute(tag, 'src'), ...(attribute(tag, 'srcset') ?? '').split(',').map((part) => part.trim().split(' ')[0])];
    }),
    ...[...content.matchAll(/url\(\s*["']?([^"')]+)/g)].map(([, address]) => address),
  ];
  return found.filter((address) => address && !/^(?:#|data:)/.test(address)).map((address) => new URL(address, base).href);
}

const assets = new Set();
const scripts = new Set();
const report = [];
for (const [name, path] of Object.entries(FIVE)) {
  const html = await text(path);
  for (const address of needs(html)) assets.add(address);

  const styles = tags(html, 'link').filter((tag) => attribute(tag, 'rel') === 'stylesheet');
  const modules = tags(html, 'script').filter((tag) => attribute(tag, 'type') !== 'application/ld+json');
  expect(styles.length && modules.length, `${path}: no style or no module`);
  for (const tag of [...styles, ...modules]) {
    const address = attribute(tag, 'href') ?? attribute(tag, 'src');
    expect(address, `${path}: inline: ${tag}`);
    if (!address) continue;
    const { body } = await ask(address);
    const [kind] = (attribute(tag, 'integrity') ?? '').split('-');
    const right = ['sha256', 'sha384', 'sha512'].includes(kind) && `${kind}-${createHash(kind).update(body).digest('base64')}`;
    expect(attribute(tag, 'integrity') === right, `${path}: the integrity of ${address} is ${right || 'needed'}`);
    if (modules.includes(tag)) scripts.add(address);
  }

  let weight = await compressed(path);
  for (const tag of styles) weight += await compressed(attribute(tag, 'href'));
  expect(weight <= PAGE_BUDGET, `${path}: HTML and CSS are ${weight} bytes, more than ${PAGE_BUDGET}`);

  const share = countTokens(await text(path, { Accept: 'text/markdown' })) / countTokens(html);
  expect(share <= MARKDOWN_SHARE, `${path}: the Markdown costs ${share.toFixed(3)} of the HTML's tokens, more than ${MARKDOWN_SHARE}`);
  report.push(`${name} ${(weight / 1000).toFixed(1)} KB, ${share.toFixed(2)}`);
}

for (const address of assets) {
  expect(new URL(address).origin === base, `an asset elsewhere: ${address}`);
  if (!address.startsWith(base)) continue;
  const { status, headers, body } = await ask(address);
  expect(status === 200 && body.length, `${address}: ${status}, ${body.length} bytes`);
  const digest = createHash('sha256').update(body).digest('hex');
  const hash = /\.([0-9a-f]{8,})\.[a-z0-9]+$/.exec(address)?.[1];
  expect(hash && digest.startsWith(hash), `${address} is not named after its content, ${digest}`);
  const caching = headers['cache-control'] ?? '';
  expect(/\bimmutable\b/.test(caching) && Number(/max-age=(\d+)/.exec(caching)?.[1]) >= YEAR, `${address} is kept for: ${caching}`);
  if (headers['content-type'].startsWith('text/css')) for (const next of needs(body.toString())) assets.add(next);
}

let script = 0;
for (const address of scripts) script += (await ask(address)).body.length;
expect(script <= SCRIPT_BUDGET, `JavaScript is ${script} bytes, more than ${SCRIPT_BUDGET}`);
console.log([...findings, `${report.join('; ')}; JavaScript ${(script / 1000).toFixed(1)} KB`].join('\n'));
if (findings.length) process.exitCode = 1;
