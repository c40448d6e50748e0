// A host elsewhere that the newest disk image comes from.
import { createServer } from 'node:http';

export const IMAGE = Buffer.from('not really a disk image');

/** Serves it on a port of loopback at every path; returns a function that stops the server. */
export const serveImage = (port) =>
  new Promise((done, fail) => {
    const server = createServer((_, answer) =>
      answer.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment; filename="Troupe.dmg"' }).end(IMAGE),
    ).once('error', fail);
    server.listen(Number(port), '127.0.0.1', () =>
      done(() => {
        server.close();
        server.closeAllConnections();
      }),
    );
  });
