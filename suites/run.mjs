// The runner behind suites/run: starts the service, runs the suites one after the other, ends it.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const HERE = import.meta.dirname;
const START_TRIES = 600; // every 50 ms
const SUITE_LIMIT = 15 * 60_000; // a hanging tool is ended after this
const EXIT_LIMIT = 10_000; // SIGTERM to exit

const SUITES = {
  conformance: async ({ base, tmp, node }) => {
    const results = join(tmp, 'conformance');
    try {
      await node(module('@modelcontextprotocol/conformance/dist/index.js'), 'server', '--url', `${base}/mcp`,
        '--expected-failures', join(HERE, 'baseline.yml'), '-o', results);
    } catch (error) {
      const summary = error.message.slice(Math.max(0, error.message.indexOf('=== SUMMARY ===')));
      throw new Failed(`${summary}\n${await conformanceDetails(results)}`);
    }
  },

  'mcp-sdk-1': ({ base, node }) => node(join(HERE, 'mcp-sdk-1.mjs'), base),
  'mcp-client-2': ({ base, node }) => node(join(HERE, 'mcp-client-2.mjs'), base),
  'mcp-client-2-auto': ({ base, node }) => node(join(HERE, 'mcp-client-2.mjs'), base, 'auto'),
  'mcp-python': ({ base, python }) => python('-X', 'utf8', join(HERE, 'mcp_clients.py'), base),

  inspector: async ({ base, node }) => {
    const inspect = (...args) =>
      node(module('@modelcontextprotocol/inspector/clients/launcher/build/index.js'), '--cli', `${base}/mcp`,
        '--transport', 'http', '--stored-auth-only', ...args);
    await inspect('--method', 'tools/list', '--strict');
    await inspect('--method', 'tools/list', '--strict', '--protocol-era', 'auto');
    const answer = await inspect('--method', 'tools/call', '--tool-name', 'get_download');
    if (!answer.includes(`${base}/#download`)) throw new Failed(`${answer}\nget_download does not name the download page`);
  },

  redocly: async ({ node, openapi }) =>
    node(module('@redocly/cli/bin/cli.js'), 'lint', await openapi(), '--config', join(HERE, 'redocly.yaml'),
      '--extends', 'recommended-strict', '--lint-config', 'error', '--format', 'stylish'),

  spectral: async ({ node, openapi }) =>
    node(module('@stoplight/spectral-cli/dist/index.js'), 'lint', await openapi(), '--ruleset', join(HERE, 'spectral.yaml'),
      '--fail-severity', 'hint'),

  schemathesis: ({ base, python }) =>
    python('-m', 'schemathesis.cli', 'run', `${base}/openapi.json`, '--max-examples', '200', '--generation-deterministic',
      '--continue-on-failure', '--workers', '1', '--no-color'),

  'html-validate': async ({ base, tmp, node }) => {
    const pages = { home: '/', about: '/about', privacy: '/privacy', developers: '/developers', contact: '/contact', 'not-found': '/no-such-page' };
    const files = [];
    for (const [name, path] of Object.entries(pages)) {
      const file = join(tmp, 'pages', `${name}.html`);
      await download(base + path, file, name === 'not-found' ? 404 : 200, 'text/html');
      files.push(file);
    }
    await node(module('html-validate/bin/html-validate.mjs'), '--config', join(HERE, 'html-validate.json'), '--max-warnings', '0', ...files);
  },
};

class Failed extends Error {}

const module = (path) => join(HERE, 'node_modules', path);

/** The messages of all checks that did not pass and are not in the baseline; the tool keeps them to its result files. */
async function conformanceDetails(results) {
  const baseline = await readFile(join(HERE, 'baseline.yml'), 'utf8');
  const expected = new Set([...baseline.matchAll(/^ *- (\S+)/gm)].map(([, name]) => name));
  const lines = [];
  for (const folder of (await readdir(results).catch(() => [])).sort()) {
    const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    if (expected.has(scenario)) continue;
    for (const check of JSON.parse(await readFile(join(results, folder, 'checks.json'), 'utf8')))
      if (check.status !== 'SUCCESS') lines.push(`${scenario}: ${check.errorMessage ?? JSON.stringify(check.details)}`);
  }
  return lines.join('\n');
}

async function download(url, file, status, type, change = (text) => text) {
  const answer = await fetch(url);
  const got = answer.headers.get('content-type') ?? '';
  if (answer.status !== status || !got.startsWith(type))
    throw new Failed(`GET ${url}: expected ${status} ${type}, got ${answer.status} ${got}`);
  await mkdir(resolve(file, '..'), { recursive: true });
  await writeFile(file, change(await answer.text()));
}

const freePort = () =>
  new Promise((done, fail) => {
    const probe = createServer().once('error', fail);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });

// Everything started here leads a process group of its own, so that none of its children outlives it.
const groups = new Set();
const kill = (pid, signal) => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
};
const killAll = () => groups.forEach((pid) => kill(-pid, 'SIGKILL'));

function start(command, args, options) {
  const child = spawn(command, args, { detached: true, ...options });
  if (child.pid) groups.add(child.pid);
  child.ended = new Promise((done) => {
    child.once('error', (error) => done({ error }));
    child.once('close', (code, signal) => done({ code, signal }));
  });
  return child;
}

const verdict = ({ error, code, signal }) => (error ? error.message : signal ? `ended by ${signal}` : `exit code ${code}`);

async function tool(command, args, options) {
  const child = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  const limit = setTimeout(() => kill(-child.pid, 'SIGKILL'), SUITE_LIMIT);
  const end = await child.ended;
  clearTimeout(limit);
  if (child.pid) {
    kill(-child.pid, 'SIGKILL');
    groups.delete(child.pid);
  }
  if (end.code !== 0) throw new Failed(`${output.trimEnd()}\n(${verdict(end)})`);
  return output;
}

async function main(binary, names) {
  const unknown = names.filter((name) => !Object.hasOwn(SUITES, name));
  if (!binary || unknown.length) {
    if (unknown.length) console.error(`suites/run: no such suite: ${unknown.join(', ')}`);
    console.error(`usage: suites/run BINARY [SUITE...]\nsuites: ${Object.keys(SUITES).join(' ')}`);
    return 2;
  }
  const tmp = await mkdtemp(join(tmpdir(), 'porchlight-suites-'));
  process.once('exit', killAll);
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]])
    process.once(signal, () => {
      killAll();
      rm(tmp, { recursive: true, force: true }).finally(() => process.exit(code));
    });
  try {
    return await runAll(resolve(binary), names.length ? names : Object.keys(SUITES), tmp);
  } finally {
    killAll();
    await rm(tmp, { recursive: true, force: true });
  }
}

async function runAll(binary, names, tmp) {
  let passed = 0;
  let failed = 0;
  const judge = async (name, work) => {
    try {
      await work();
      passed += 1;
      console.log(`ok  ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}\n${error instanceof Failed ? error.message : error.stack}`);
    }
  };

  // The tools' own environment: nothing of the caller's settings, no home folder, no telemetry.
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('PORCHLIGHT_')));
  const home = join(tmp, 'home');
  await mkdir(home);
  const quiet = {
    ...inherited, HOME: home, NO_COLOR: '1', CI: 'true', PYTHONDONTWRITEBYTECODE: '1',
    REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', SCARF_ANALYTICS: 'false', DO_NOT_TRACK: '1',
    FASTMCP_CHECK_FOR_UPDATES: 'off',
  };
  delete quiet.FORCE_COLOR;

  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const data = join(tmp, 'data');
  await mkdir(data);
  const logFile = join(tmp, 'server.log');
  const log = await open(logFile, 'w');
  const server = start(binary, ['serve'], {
    cwd: tmp,
    stdio: ['ignore', log.fd, log.fd],
    env: { ...inherited, PORCHLIGHT_LISTEN: `127.0.0.1:${port}`, PORCHLIGHT_OPS_LISTEN: 'off', PORCHLIGHT_DATA_DIR: data, RUST_BACKTRACE: '1' },
  });
  await log.close();
  let ended = null;
  server.ended.then((end) => (ended = end));
  const serverLog = async () => `the service's log ends:\n${(await readFile(logFile, 'utf8')).split('\n').slice(-40).join('\n')}`;

  const context = {
    base,
    tmp,
    node: (...args) => tool(process.execPath, args, { cwd: tmp, env: quiet }),
    python: (...args) => tool(join(HERE, '.venv/bin/python'), args, { cwd: tmp, env: quiet }),
    openapi: async () => {
      const file = join(tmp, 'openapi.json');
      // one member a line, so that the linters' line numbers say something
      await download(`${base}/openapi.json`, file, 200, 'application/', (text) => JSON.stringify(JSON.parse(text), null, 2));
      return file;
    },
  };

  let up = false;
  for (let tries = 0; !up && !ended && tries < START_TRIES; tries += 1) {
    up = await fetch(base, { signal: AbortSignal.timeout(1000) }).then((answer) => answer.status === 200, () => false);
    if (!up) await delay(50);
  }

  if (up) {
    for (const name of names)
      await judge(name, async () => {
        await SUITES[name](context);
        if (ended) throw new Failed(`the service is gone: ${verdict(ended)}\n${await serverLog()}`);
      });
  }
  await judge('server', async () => {
    if (!up) throw new Failed(`GET / was never answered with 200${ended ? `: ${verdict(ended)}` : ''}\n${await serverLog()}`);
    kill(server.pid, 'SIGTERM');
    await Promise.race([server.ended, delay(EXIT_LIMIT, null, { ref: false })]);
    if (ended?.code !== 0) throw new Failed(`after SIGTERM: ${ended ? verdict(ended) : 'still running'}\n${await serverLog()}`);
    if ((await readFile(logFile, 'utf8')).includes('panicked at')) throw new Failed(`the service panicked\n${await serverLog()}`);
  });
  console.log(`${passed} passed, ${failed} failed`);
  return failed ? 1 : 0;
}

process.exitCode = await main(process.argv[2], process.argv.slice(3));
