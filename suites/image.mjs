// Another host that serves the newest disk image.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

export const IMAGE = readFileSync(new URL('../content/sample.dmg', import.meta.url));

/** Serves the image at every path of a loopback port; resolves to a function that stops the server. */
export const serveImage = (port) =>
  new Promise((resolve, reject) => {
    const server = createServer((_, response) =>
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment; filename="Troupe.dmg"' }).end(IMAGE),
    ).once('error', reject);
    server.listen(Number(port), '127.0.0.1', () =>
      resolve(() => {
        server.close();
        server.closeAllConnections();
      }),
    );
  });
