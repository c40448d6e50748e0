// usage: node mcp-sdk-1.mjs BASE_URL
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expectService } from './mcp-expect.mjs';

const base = process.argv[2];
const client = new Client({ name: 'porchlight-suites', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(`${base}/mcp`));
await client.connect(transport);
assert.equal(transport.protocolVersion, '2025-11-25');
assert.equal(transport.sessionId, undefined);
await expectService(client, base);
await client.close();
