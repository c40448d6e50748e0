// A line to a service that can be slow, and be cut.
import { connect, createServer } from 'node:net';

/** How many bytes a browser can send while the line is held. */
const MOST = 100_000;

export class Line {
  #clients = new Set();
  #state = 'open';
  #passed = 0;

  /** In front of the service at an origin; has an origin of its own. */
  static async to(origin) {
    const line = new Line();
    const { protocol, hostname, port } = new URL(origin);
    const server = createServer((client) => line.#begin(client, connect(port, '127.0.0.1'))).unref();
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    line.origin = `${protocol}//${hostname}:${server.address().port}`;
    return line;
  }

  #begin(client, service) {
    this.#clients.add(client);
    // What the service said before it closed the connection arrives, although browsers look at it only after all is sent.
    service.on('error', () => {}).on('close', () => client.resume().end());
    client.on('error', () => {}).on('close', () => {
      this.#clients.delete(client);
      service.destroy();
    });
    client.on('data', (chunk) => {
      if (service.writable) service.write(chunk);
      this.#passed += chunk.length;
      if (this.#state === 'held' && this.#passed > MOST) client.pause();
    });
    service.pipe(client);
    if (this.#state === 'cut') client.destroy();
  }

  /** What browsers send after its beginning is not passed on. */
  hold() {
    [this.#state, this.#passed] = ['held', 0];
  }

  cut() {
    this.#state = 'cut';
    for (const client of this.#clients) client.destroy();
  }

  open() {
    this.#state = 'open';
    for (const client of this.#clients) client.resume();
  }
}
