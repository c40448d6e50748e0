// usage: node mcp-client-2.mjs BASE_URL [auto]
// Without a mode the client negotiates as it does by default; `auto` probes for a newer
// protocol revision first and must fall back to the handshake.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expectService } from './mcp-expect.mjs';

const [base, mode] = process.argv.slice(2);
const options = mode ? { versionNegotiation: { mode } } : {};
const client = new Client({ name: 'porchlight-suites', version: '1.0.0' }, options);
const transport = new StreamableHTTPClientTransport(new URL(`${base}/mcp`));
await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion(), '2025-11-25');
assert.equal(transport.sessionId, undefined);
await expectService(client, base);
await client.close();
