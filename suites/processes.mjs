// Programs that the suites start: tools, and the service itself. None outlives the run.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const START_TRIES = 600; // every 50 ms
const TOOL_LIMIT = 15 * 60_000; // a hanging tool is ended after this
const EXIT_LIMIT = 10_000; // SIGTERM to exit

/** A finding: printed as its message alone, where other errors are printed with their stack. */
export class Failed extends Error {}

// Everything started here leads a process group of its own, so that none of its children outlives it.
const groups = new Set();
const kill = (pid, signal) => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
};
export const killAll = () => groups.forEach((pid) => kill(-pid, 'SIGKILL'));

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

/** Runs a program to its end and gives what it printed. */
export async function tool(command, args, options) {
  const child = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  const limit = setTimeout(() => kill(-child.pid, 'SIGKILL'), TOOL_LIMIT);
  const end = await child.ended;
  clearTimeout(limit);
  if (child.pid) {
    kill(-child.pid, 'SIGKILL');
    groups.delete(child.pid);
  }
  if (end.code !== 0) throw new Failed(`${output.trimEnd()}\n(${verdict(end)})`);
  return output;
}

/** Below the ports that connections get as their own: none of them takes it before it is used. */
export async function freePort() {
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const isFree = await new Promise((done) => {
    const probe = createServer().once('error', () => done(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => done(true)));
  });
  return isFree ? port : freePort();
}

const NOTES = `# Quicker

Windows open **sooner**, and a routine can be put off until tomorrow.

## Fixed

- A window that was closed no longer comes back.
- \`app --version\` says which version it is.
`;

/** Publishes two versions of something that ends as a disk image does. */
async function publish(binary, folder, env) {
  const image = join(folder, 'image.dmg');
  const notes = join(folder, 'notes.md');
  await writeFile(image, Buffer.concat([Buffer.alloc(1 << 20), Buffer.from('koly'.padEnd(512, '\0'))]));
  await writeFile(notes, NOTES);
  for (const version of ['1.3.0', '1.4.0'])
    await tool(binary, ['release', 'publish', image, '--version', version, '--notes', notes, '--minimum-macos', '14.0'], { cwd: folder, env });
}

/** The service on a free port, with its data in a folder of its own; with `https` it has a certificate and a port in front. */
export class Service {
  #child;
  #end = null;
  #log;
  up = false;

  static async start(binary, folder, env, https) {
    const service = new Service();
    const port = await freePort();
    const front = await https?.front(port);
    service.base = front?.base ?? `http://127.0.0.1:${port}`;
    /** How many connections the tools made, by version of HTTP. */
    service.connections = front?.connections ?? {};
    service.#log = join(folder, 'server.log');
    await mkdir(join(folder, 'data'), { recursive: true });
    const settings = {
      PORCHLIGHT_CONFIG: '/dev/null', PORCHLIGHT_LISTEN: `127.0.0.1:${port}`, PORCHLIGHT_OPS_LISTEN: 'off', PORCHLIGHT_DATA_DIR: join(folder, 'data'),
      RUST_BACKTRACE: '1', ...front?.settings, ...env,
    };
    service.folder = folder;
    /** Runs another command of the program with the same settings. */
    service.run = (...args) => tool(binary, args, { cwd: folder, env: settings });
    await publish(binary, folder, settings);
    const log = await open(service.#log, 'w');
    service.#child = start(binary, ['serve'], { cwd: folder, stdio: ['ignore', log.fd, log.fd], env: settings });
    await log.close();
    service.#child.ended.then((end) => (service.#end = end));
    for (let tries = 0; !service.up && !service.#end && tries < START_TRIES; tries += 1) {
      service.up = await fetch(service.base, { signal: AbortSignal.timeout(1000) }).then((answer) => answer.status === 200, () => false);
      if (!service.up) await delay(50);
    }
    for (const version of Object.keys(service.connections)) delete service.connections[version]; // those were ours
    return service;
  }

  async expectAlive() {
    if (!this.up) throw await this.#failed(`GET / was never answered with 200${this.#end ? `: ${verdict(this.#end)}` : ''}`);
    if (this.#end) throw await this.#failed(`the service is gone: ${verdict(this.#end)}`);
  }

  /** Sends SIGTERM and checks how the service exits. */
  async end() {
    await this.expectAlive();
    kill(this.#child.pid, 'SIGTERM');
    await Promise.race([this.#child.ended, delay(EXIT_LIMIT, null, { ref: false })]);
    if (this.#end?.code !== 0) throw await this.#failed(`after SIGTERM: ${this.#end ? verdict(this.#end) : 'still running'}`);
    if ((await readFile(this.#log, 'utf8')).includes('panicked at')) throw await this.#failed('the service panicked');
  }

  async #failed(what) {
    return new Failed(`${what}\nthe service's log ends:\n${(await readFile(this.#log, 'utf8')).split('\n').slice(-40).join('\n')}`);
  }
}
