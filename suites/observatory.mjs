// usage: node observatory.mjs BASE_URL HOST
// MDN's HTTP Observatory scans https://HOST/. Its requests go to the service at BASE_URL, which is configured
// with HOST as its public address. This file stands in for the proxy: TLS and the redirect from http to https.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import axios from 'axios';

const [, , base, host] = process.argv;
const WANTED = { grade: 'A+', score: 130 };

// The package fetches the browsers' list of https-only hosts when it is installed. Ours is not in it.
await writeFile(fileURLToPath(new URL('../conf/hsts-preload.json', import.meta.resolve('@mdn/mdn-http-observatory'))), '{}');
const { scan } = await import('@mdn/mdn-http-observatory');

axios.defaults.adapter = async (config) => {
  const url = new URL(config.url);
  if (url.host !== host) throw new Error(`a request to ${url.host}`);
  if (url.protocol === 'http:')
    return { config, status: 301, statusText: '', headers: { location: `https://${host}${url.pathname}` }, data: '' };
  const answer = await fetch(base + url.pathname, { method: config.method, headers: { ...config.headers }, redirect: 'manual' });
  return { config, status: answer.status, statusText: '', headers: Object.fromEntries(answer.headers), data: await answer.text() };
};

const { scan: result, tests } = await scan(host);
console.log(`${result.grade} ${result.score}`);
if (result.grade !== WANTED.grade || result.score < WANTED.score) {
  for (const [name, { scoreModifier, result: finding }] of Object.entries(tests)) console.log(`${scoreModifier} ${name}: ${finding}`);
  process.exitCode = 1;
}
