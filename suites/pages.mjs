// Every page of the site, and the pages that a form answers with.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const FIVE = { home: '/', about: '/about', privacy: '/privacy', developers: '/developers', contact: '/contact' };

export const PAGES = {
  ...FIVE,
  releases: '/releases',
  'not-found': '/no-such-page',
  'download-started': '/download/started',
  'contact-sent': '/contact/sent',
};

const STATUS = { 'not-found': 404 };

const REFUSED = {
  'download-refused': ['/download', { email: 'nobody<at>"example"', updates: 'on' }],
  'contact-refused': ['/contact', { name: 'Ada & "Co" <b>', email: 'nobody', message: 'First line\n\n  second </textarea> line' }],
  'contact-refused-empty': ['/contact', { email: 'ada@example.com', message: ' ' }],
};

/** All pages as HTML by name, refused forms among them; throws where an answer is not what it should be. */
export async function everyPage(base) {
  const pages = {};
  for (const [name, path] of Object.entries(PAGES)) pages[name] = await html(base + path, STATUS[name] ?? 200);
  for (const [name, [path, fields]] of Object.entries(REFUSED))
    pages[name] = await html(base + path, 400, { method: 'POST', body: new URLSearchParams(fields) });
  return pages;
}

async function html(url, status, options) {
  const answer = await fetch(url, { redirect: 'manual', ...options });
  const type = answer.headers.get('content-type') ?? '';
  if (answer.status !== status || !type.startsWith('text/html'))
    throw new Error(`${options?.method ?? 'GET'} ${url}: expected ${status} text/html, got ${answer.status} ${type}`);
  return answer.text();
}

/** The same as files in a folder; gives their names. */
export async function savePages(base, folder) {
  await mkdir(folder, { recursive: true });
  const files = [];
  for (const [name, text] of Object.entries(await everyPage(base))) {
    const file = join(folder, `${name}.html`);
    await writeFile(file, text);
    files.push(file);
  }
  return files;
}
