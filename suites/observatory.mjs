// usage: node observatory.mjs BASE_URL HOST [REDIRECT_PORT]
// MDN's HTTP Observatory scans https://HOST/. Its requests go to the service at BASE_URL, which is configured
// with HOST as its public address. If BASE_URL is plain HTTP, this file stands in for the proxy: TLS and the redirect from
// http to https. Otherwise both are the service's own, and plain requests go to REDIRECT_PORT.
import { writeFile } from 'node:fs/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import { fileURLToPath } from 'node:url';
import axios from 'axios';

const [, , base, host, redirectPort] = process.argv;
const WANTED = { grade: 'A+', score: 130 };

// The package fetches the browsers' list of https-only hosts when it is installed. Ours is not in it.
await writeFile(fileURLToPath(new URL('../conf/hsts-preload.json', import.meta.resolve('@mdn/mdn-http-observatory'))), '{}');
const { scan } = await import('@mdn/mdn-http-observatory');

const { protocol, port } = new URL(base);

/** Asks the service for a page of HOST. */
const ask = (by, port, { method, pathname, headers }) =>
  new Promise((done, fail) => {
    const options = { port, method, path: pathname, servername: host, headers: { ...headers, host } };
    by.request({ host: '127.0.0.1', ...options }, async (answer) => {
      const chunks = await answer.toArray().catch(fail);
      done({ status: answer.statusCode, headers: answer.headers, data: Buffer.concat(chunks).toString() });
    }).on('error', fail).end();
  });

axios.defaults.adapter = async (config) => {
  const url = new URL(config.url);
  if (url.host !== host) throw new Error(`a request to ${url.host}`);
  const headers = { ...config.headers.toJSON(), 'accept-encoding': 'identity' };
  const request = { method: config.method.toUpperCase(), pathname: url.pathname, headers };
  let answer;
  if (url.protocol === 'https:') answer = await ask(protocol === 'https:' ? https : http, port, request);
  else if (redirectPort) answer = await ask(http, redirectPort, request);
  else answer = { status: 301, headers: { location: `https://${host}${url.pathname}` }, data: '' };
  return { config, statusText: '', ...answer };
};

const { scan: result, tests } = await scan(host);
console.log(`${result.grade} ${result.score}`);
if (result.grade !== WANTED.grade || result.score < WANTED.score) {
  for (const [name, { scoreModifier, result: finding }] of Object.entries(tests)) console.log(`${scoreModifier} ${name}: ${finding}`);
  process.exitCode = 1;
}
