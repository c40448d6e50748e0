// The runner behind suites/run: starts the service, runs the suites two at a time, stops the service.
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { emptyDesk, fullDesk, publishingDesk, sendingDesk, smallDesk } from './desk-service.mjs';
import { Https } from './https.mjs';
import { mailedPages } from './mailed.mjs';
import { savePages } from './pages.mjs';
import { Failed, freePort, killAll, Service, tool } from './processes.mjs';

const HERE = import.meta.dirname;

/** How many suites run at once, and which take longest: they start first, so that none is left alone at the end. */
const LANES = 2;
const SLOWEST = ['firefox', 'schemathesis', 'axe', 'lighthouse', 'desk', 'browser', 'dashboard', 'new-site', 'nu'];

/** Not part of a run that names no suite: their browser is a large package, which trials/firefox installs. */
const ONLY_BY_NAME = ['firefox', 'desk-firefox'];
/** These take long, and are part of a run that names no suite only with --https. */
const ONLY_WITH_HTTPS = ['lighthouse', 'new-site', 'schemathesis'];

const SUITES = {
  conformance: async ({ base, tmp, node, overHttps }) => {
    const results = join(tmp, 'conformance');
    const baseline = join(tmp, 'baseline.yml');
    // By its description this scenario is about servers without https. It wants `http://` as the origin, and an HTTP answer for
    // a host that is refused in the handshake.
    const more = overHttps ? '  - dns-rebinding-protection\n' : '';
    await writeFile(baseline, (await readFile(join(HERE, 'baseline.yml'), 'utf8')) + more);
    try {
      await node(module('@modelcontextprotocol/conformance/dist/index.js'), 'server', '--url', `${base}/mcp`,
        '--expected-failures', baseline, '-o', results);
    } catch (error) {
      const summary = error.message.slice(Math.max(0, error.message.indexOf('=== SUMMARY ===')));
      throw new Failed(`${summary}\n${await conformanceDetails(results, await readFile(baseline, 'utf8'))}`);
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

  'html-validate': async ({ pages, node }) => htmlValidate(node, await pages()),

  nu: async ({ base, tmp, pages, java }) => {
    const files = await pages();
    await nu(java, ...files);
    const home = files.find((file) => file.endsWith('/home.html'));
    const style = /<link rel="stylesheet" href="([^"]+)"/.exec(await readFile(home, 'utf8'))?.[1];
    if (!style) throw new Failed('the home page names no stylesheet');
    const file = join(tmp, 'style.css');
    await download(base + style, file, 200, 'text/css');
    await nu(java, '--css', file);
  },

  browser: (context) => inBrowser('browser.mjs', context, 'chromium'),
  firefox: (context) => reporting(inBrowser('browser.mjs', context, 'firefox')),
  axe: async (context) => inBrowser('axe.mjs', context, await context.mailed()),
  'screen-reader': async ({ base, node, mailed, desks, record }) =>
    reporting(node(join(HERE, 'screen-reader.mjs'), base, await mailed(), await desks.small(), await desks.publishing(), ...record)),
  dashboard: async ({ serve, tmp, node, java }) => {
    const port = await freePort();
    const base = await serve({ PORCHLIGHT_OPS_LISTEN: `127.0.0.1:${port}` });
    const dashboard = `http://127.0.0.1:${port}`;
    await node(join(HERE, 'dashboard.mjs'), base, dashboard);
    const file = join(tmp, 'dashboard.html');
    await download(`${dashboard}/`, file, 200, 'text/html');
    await validate({ node, java }, [file]);
  },
  desk: async ({ desks, tmp, node, java }) => {
    const four = await Promise.all([desks.small(), desks.full(), desks.empty(), desks.publishing()]);
    const folder = join(tmp, 'desk');
    const said = await node(join(HERE, 'desk.mjs'), folder, ...four);
    const [cases] = await Promise.all([
      deskInBrowser({ desks, node }, 'chromium'),
      validate({ node, java }, (await readdir(folder)).map((name) => join(folder, name))),
    ]);
    return { note: `${said.trim()}; ${cases.trim()}` };
  },
  'desk-firefox': (context) => reporting(deskInBrowser(context, 'firefox')),
  'new-site': async ({ porchlight, serve, tmp, node }) => {
    const name = 'Tea & Time';
    for (const [kind, change] of [['new', () => {}], ['changed', changeSite]]) {
      const folder = join(tmp, `${kind}-site`);
      await porchlight('new', folder, '--name', name);
      await change(folder);
      const base = await serve({ PORCHLIGHT_SITE_DIR: folder });
      const pages = await savePages(base, join(tmp, `${kind}-pages`));
      await htmlValidate(node, pages);
      await node(join(HERE, 'new-site.mjs'), base, name);
    }
  },
  example: async ({ tmp, shell, serve, node }) => {
    const [, section] = /\n## An example\n([^]*?)\n## site.toml\n/.exec(await readFile(join(HERE, '../docs/site.md'), 'utf8'));
    const commands = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, lines]) => lines);
    const said = await shell(`${commands.join('')}`);
    if (said.includes('site files')) throw new Failed(said);
    const folder = join(tmp, 'tea');
    const base = await serve({ PORCHLIGHT_CONFIG: join(folder, 'porchlight.toml') });
    await node(join(HERE, 'example.mjs'), base);
  },
  lighthouse: ({ base, node }) => reporting(node(join(HERE, 'lighthouse.mjs'), base)),
  agents: ({ base, node }) => reporting(node(join(HERE, 'agents.mjs'), base)),
  observatory: async ({ serve, node, overHttps }) => {
    const host = 'troupe.example';
    const plain = overHttps ? [await freePort()] : []; // where the service redirects
    const settings = plain.map((port) => ['PORCHLIGHT_REDIRECT_LISTEN', `127.0.0.1:${port}`]);
    const base = await serve({ PORCHLIGHT_BASE_URL: `https://${host}`, ...Object.fromEntries(settings) });
    return reporting(node(join(HERE, 'observatory.mjs'), base, host, ...plain));
  },
  weight: ({ base, node }) => reporting(node(join(HERE, 'weight.mjs'), base)),
};

const htmlValidate = (node, files) =>
  node(module('html-validate/bin/html-validate.mjs'), '--config', join(HERE, 'html-validate.json'), '--max-warnings', '0', ...files);
const nu = (java, ...args) => java('-jar', module('vnu-jar/build/dist/vnu.jar'), '--Werror', ...args);
async function validate({ node, java }, files) {
  await htmlValidate(node, files);
  // What strangers wrote is in their languages.
  await nu(java, '--no-langdetect', ...files);
}

/** What makers do first: a price, a notice, a signature, and a screenshot whose width and height are not those of the example. */
async function changeSite(folder) {
  const file = join(folder, 'site.toml');
  const price = '[price]\namount = 25\ncurrency = "EUR"\ntrial_days = 14\nbuy_url = "https://shop.example/buy?app=tea&from=site"\n';
  const first = 'signature = "notarised"\nnotice = "Version 1.2 loses leaves."\napp_store_url = "https://apps.apple.com/app/id1"\n';
  await writeFile(file, `${first}${await readFile(file, 'utf8')}${price}`);
  const picture = '<img data-markdown-ignore src="{{ asset("og.png")|safe }}" width="1200" height="800" alt="Leaves">\n';
  await writeFile(join(folder, 'templates/pictures/window.html'), picture);
}

/** Runs a suite that drives a browser against a service whose disk image the suite itself serves on another port. */
async function inBrowser(script, { serve, node }, ...args) {
  const port = await freePort();
  const base = await serve({ PORCHLIGHT_DOWNLOAD_URL: `http://127.0.0.1:${port}/latest` });
  return node(join(HERE, script), base, port, ...args);
}

/** Two desks, because cases of either change what all of them show: who wrote last, who gets a letter, which release is the newest. */
const deskInBrowser = async ({ desks, node }, browser) =>
  node(join(HERE, 'desk-browser.mjs'), await desks.sending(), await desks.sending(), browser);

/** A suite whose output is printed behind its name. */
const reporting = async (output) => ({ note: (await output).trim() });

const module = (path) => join(HERE, 'node_modules', path);

/** The messages of all failed checks that are not in the baseline; the tool writes them to its result files only. */
async function conformanceDetails(results, baseline) {
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

/** Calls `work` the first time and returns its promise every time. */
function once(work) {
  let result;
  return () => (result ??= work());
}

async function download(url, file, status, type, change = (text) => text) {
  const answer = await fetch(url);
  const got = answer.headers.get('content-type') ?? '';
  if (answer.status !== status || !got.startsWith(type))
    throw new Failed(`GET ${url}: expected ${status} ${type}, got ${answer.status} ${got}`);
  await mkdir(resolve(file, '..'), { recursive: true });
  await writeFile(file, change(await answer.text()));
}

const OPTIONS = ['--https', '--untrusted', '--record'];

async function main(binary, args) {
  const options = args.filter((arg) => arg.startsWith('--'));
  const names = args.filter((arg) => !arg.startsWith('--'));
  const unknown = [...options.filter((option) => !OPTIONS.includes(option)), ...names.filter((name) => !Object.hasOwn(SUITES, name))];
  if (!binary || unknown.length) {
    if (unknown.length) console.error(`suites/run: no such suite or option: ${unknown.join(', ')}`);
    console.error(`usage: suites/run BINARY [--https [--untrusted]] [--record] [SUITE...]\nsuites: ${Object.keys(SUITES).join(' ')}`);
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
    const left = options.includes('--https') ? ONLY_BY_NAME : [...ONLY_BY_NAME, ...ONLY_WITH_HTTPS];
    const chosen = names.length ? names : Object.keys(SUITES).filter((name) => !left.includes(name));
    return await runAll(resolve(binary), chosen, new Set(options), tmp);
  } finally {
    killAll();
    await rm(tmp, { recursive: true, force: true });
  }
}

async function runAll(binary, names, options, tmp) {
  let passed = 0;
  let failed = 0;
  const judge = async (name, work) => {
    const start = performance.now();
    const seconds = () => `${Math.round((performance.now() - start) / 1000)} s`;
    try {
      const notes = (await work())?.filter(Boolean) ?? [];
      passed += 1;
      console.log(`ok  ${name} (${seconds()})${notes.length ? `: ${notes.join('; ')}` : ''}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} (${seconds()})\n${error instanceof Failed ? error.message : error.stack}`);
    }
  };

  // The environment of the tools: no PORCHLIGHT_ settings, an empty home folder, no telemetry.
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('PORCHLIGHT_')));
  const home = join(tmp, 'home');
  await mkdir(home);
  const https = options.has('--https') ? await Https.make(join(tmp, 'https')) : undefined;
  const quiet = {
    ...inherited, HOME: home, NO_COLOR: '1', CI: 'true', PYTHONDONTWRITEBYTECODE: '1',
    REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', SCARF_ANALYTICS: 'false', DO_NOT_TRACK: '1',
    FASTMCP_CHECK_FOR_UPDATES: 'off', ...(https && !options.has('--untrusted') ? await https.trustedIn(home) : {}),
  };
  delete quiet.FORCE_COLOR;

  const services = [];
  const start = async (settings) => {
    const service = await Service.start(binary, await mkdtemp(join(tmp, 'service-')), { ...inherited, ...settings }, https);
    services.push(service);
    return service;
  };

  /** What a suite gets to work with; `used` are its services, the first of which may be shared. */
  const contextOf = async (service) => {
    const { base } = service;
    const used = [service];
    const folder = await mkdtemp(join(tmp, 'suite-'));
    const another = async (settings) => {
      const other = await start(settings);
      used.push(other);
      await other.expectAlive();
      return other;
    };
    const context = {
      base,
      overHttps: Boolean(https),
      record: options.has('--record') ? ['--record'] : [],
      tmp: folder,
      node: (...args) => tool(process.execPath, args, { cwd: folder, env: quiet }),
      python: (...args) => tool(join(HERE, '.venv/bin/python'), args, { cwd: folder, env: quiet }),
      porchlight: (...args) => tool(binary, args, { cwd: folder, env: quiet }),
      /** Commands as a maker types them in an empty folder. */
      shell: async (commands) => {
        const programs = await mkdtemp(join(tmp, 'bin-'));
        await symlink(binary, join(programs, 'porchlight'));
        return tool('bash', ['-ec', commands], { cwd: folder, env: { ...quiet, PATH: `${programs}:${quiet.PATH}` } });
      },
      java: (...args) => tool('java', args, { cwd: folder, env: quiet }),
      openapi: once(async () => {
        const file = join(folder, 'openapi.json');
        // One member a line, so that the linters' line numbers mean something; and no address of this machine, to which they object.
        const readable = (text) => JSON.stringify(JSON.parse(text), null, 2).replaceAll(base, 'https://troupe.example');
        await download(`${base}/openapi.json`, file, 200, 'application/', readable);
        return file;
      }),
      pages: once(() => savePages(base, join(folder, 'pages'))),
      /** Starts another service with settings of its own, which runs until the end; returns its address. */
      serve: async (settings) => (await another(settings)).base,
      mailed: async () => JSON.stringify(await mailedPages(another)),
      desks: Object.fromEntries(
        Object.entries({ empty: emptyDesk, small: smallDesk, full: fullDesk, publishing: publishingDesk, sending: sendingDesk }).map(([kind, begin]) => [
          kind, async () => JSON.stringify((await begin({ another, overHttps: Boolean(https) })).desk),
        ]),
      ),
    };
    return { context, used };
  };

  // Over https each suite has a service of its own, which tells the versions of HTTP that its tool speaks.
  const shared = https ? undefined : await start({});
  const sharedContext = shared && (await contextOf(shared));
  if (!shared || shared.up) {
    const slow = SLOWEST.filter((name) => names.includes(name));
    const queue = [...slow, ...names.filter((name) => !slow.includes(name))];
    const lane = async () => {
      for (let name; (name = queue.shift()); )
        await judge(name, async () => {
          const { context, used } = sharedContext ?? (await contextOf(await start({})));
          const result = await SUITES[name](context);
          for (const service of used) await service.expectAlive();
          return [result?.note, versions(used)];
        });
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }
  await judge('server', async () => {
    for (const service of services) await service.end();
  });
  console.log(`${passed} passed, ${failed} failed`);
  return failed ? 1 : 0;
}

/** How many connections were made over https, by version of HTTP. */
function versions(services) {
  const count = (version) => services.reduce((sum, { connections }) => sum + (connections[version] ?? 0), 0);
  const counted = ['HTTP/2', 'HTTP/1.1'].filter(count).map((version) => `${count(version)} ${version}`);
  return counted.length ? `connections: ${counted.join(', ')}` : '';
}

process.exitCode = await main(process.argv[2], process.argv.slice(3));
