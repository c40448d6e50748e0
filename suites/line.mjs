// A line to a service that can be slow, and be cut.
import { connect, createServer } from 'node:net';

export class Line {
  #clients = new Map();
  #state = 'open';

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
    this.#clients.set(client, service);
    // What the service said before it closed the connection arrives, although browsers look at it only after all is sent.
    service.on('error', () => {}).on('close', () => client.unpipe().resume().end());
    client.on('error', () => {}).on('close', () => {
      this.#clients.delete(client);
      service.destroy();
    });
    service.pipe(client);
    if (this.#state === 'open') client.pipe(service);
    if (this.#state === 'cut') client.destroy();
  }

  /** What browsers send is not passed on. */
  hold() {
    this.#state = 'held';
    for (const client of this.#clients.keys()) client.unpipe().pause();
  }

  cut() {
    this.#state = 'cut';
    for (const client of this.#clients.keys()) client.destroy();
  }

  open() {
    this.#state = 'open';
    for (const [client, service] of this.#clients) client.pipe(service);
  }
}
