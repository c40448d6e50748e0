// What a run over https needs: a certificate of the run's own, tools that trust it, and ports that note the version of HTTP.
import { createServer, connect } from 'node:net';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { tool } from './processes.mjs';

/** The hosts that the certificate is for: where tools find the service, and the public address that `observatory` scans. */
const HOSTS = ['localhost', 'troupe.example'];
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];

/** Firefox looks for certificates in its profile, a new folder each time. */
const FIREFOX = `#!/bin/sh
for argument; do
  [ "$before" = --profile ] && cp DATABASE/* "$argument"
  before=$argument
done
exec firefox-esr "$@"
`;

export class Https {
  /** Makes a root and a certificate in a folder. This process trusts the root from now on. */
  static async make(folder) {
    const https = new Https();
    await mkdir(folder);
    https.folder = folder;
    https.root = join(folder, 'root.pem');
    const openssl = (...args) => tool('openssl', args, { cwd: folder });
    await openssl('req', '-x509', ...KEY, '-subj', '/CN=Root of a run', '-keyout', 'root.key', '-out', 'root.pem',
      '-addext', 'keyUsage=critical,keyCertSign');
    await openssl('req', '-x509', ...KEY, '-subj', `/CN=${HOSTS[0]}`, '-keyout', 'site.key', '-out', 'site.pem',
      '-CA', 'root.pem', '-CAkey', 'root.key', '-addext', 'basicConstraints=critical,CA:FALSE',
      '-addext', `subjectAltName=${HOSTS.map((host) => `DNS:${host}`).join(',')}`, '-addext', 'extendedKeyUsage=serverAuth');
    setDefaultCACertificates([...getCACertificates('default'), await readFile(https.root, 'utf8')]);
    return https;
  }

  /** Lets the tools with this home folder trust the root; gives what belongs into their environment. */
  async trustedIn(home) {
    const database = join(home, '.pki/nssdb'); // where Chromium looks
    await mkdir(database, { recursive: true });
    const certutil = (...args) => tool('certutil', ['-d', `sql:${database}`, ...args], {});
    await certutil('-N', '--empty-password');
    await certutil('-A', '-t', 'C,,', '-n', 'suites', '-i', this.root);
    const firefox = join(this.folder, 'firefox');
    await writeFile(firefox, FIREFOX.replace('DATABASE', database), { mode: 0o755 });
    return { NODE_EXTRA_CA_CERTS: this.root, SSL_CERT_FILE: this.root, REQUESTS_CA_BUNDLE: this.root, FIREFOX_PATH: firefox };
  }

  /** A port in front of a service; gives its address, the settings of the service, and the connections by version of HTTP. */
  async front(servicePort) {
    const connections = {};
    const port = await listen((client) => {
      const service = connect(servicePort, '127.0.0.1');
      client.pipe(service).pipe(client);
      client.once('data', (hello) => {
        const version = offersHttp2(hello) ? 'HTTP/2' : 'HTTP/1.1';
        connections[version] = (connections[version] ?? 0) + 1;
      });
      for (const [one, other] of [[client, service], [service, client]]) one.on('error', () => other.destroy()).on('close', () => other.destroy());
    });
    const base = `https://${HOSTS[0]}:${port}`;
    const settings = {
      PORCHLIGHT_BASE_URL: base, PORCHLIGHT_TLS_CERT: join(this.folder, 'site.pem'), PORCHLIGHT_TLS_KEY: join(this.folder, 'site.key'),
    };
    return { base, settings, connections };
  }
}

const listen = (serve) =>
  new Promise((done, fail) => {
    const server = createServer(serve).once('error', fail);
    server.listen(0, '127.0.0.1', () => done(server.address().port));
    server.unref();
  });

/**
 * Whether the first message of a TLS client offers HTTP/2, which the service then chooses (trials/https proves it). The choice
 * itself is encrypted; the offer is extension 16, a list of names, each behind its length.
 */
const offersHttp2 = (hello) => /\x00\x10\x00.\x00.\x02h2/s.test(hello.toString('latin1'));
