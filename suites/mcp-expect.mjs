// What every official JavaScript client must see. `client` is a connected client of either
// package: both have listTools, callTool and close with the same shapes.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

const TOOLS = ['about_service', 'get_download', 'join_waitlist', 'read_page'];
const PAGES = { home: 'index', about: 'about', privacy: 'privacy', developers: 'developers', contact: 'contact' };

const text = (result) => {
  assert.equal(result.content.length, 1);
  assert.equal(result.content[0].type, 'text');
  return result.content[0].text;
};

/** A result that is no error and whose text is its structured content as JSON. */
const structured = (result) => {
  assert.notEqual(result.isError, true, `unexpected isError: ${JSON.stringify(result)}`);
  assert.deepEqual(JSON.parse(text(result)), result.structuredContent);
  return result.structuredContent;
};

export async function expectService(client, base) {
  const call = (name, args = {}) => client.callTool({ name, arguments: args });

  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);

  structured(await call('about_service'));

  for (const [page, file] of Object.entries(PAGES)) {
    const result = await call('read_page', { page });
    assert.notEqual(result.isError, true);
    const served = await fetch(`${base}/${file}.md`);
    assert.equal(served.status, 200);
    assert.equal(text(result), await served.text(), `read_page ${page} differs from /${file}.md`);
  }
  assert.equal((await call('read_page', { page: 'nowhere' })).isError, true);

  structured(await call('get_download'));
  const where = text(await call('get_download'));
  assert.ok(where.includes(`${base}/#download`), 'get_download does not name the download page');
  assert.ok(!where.includes('/releases/'), 'get_download names a disk image');

  const email = `suite-${randomUUID()}@example.org`;
  assert.equal(structured(await call('join_waitlist', { email, source: 'suites' })).already, false);
  assert.equal(structured(await call('join_waitlist', { email })).already, true);
  const refused = await call('join_waitlist', { email: 'not an address' });
  assert.equal(refused.isError, true);
  assert.ok(text(refused).length > 0);

  await assert.rejects(call('no_such_tool'), { code: -32602 });
}
