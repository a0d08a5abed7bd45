import { beforeAll, expect, it, jest } from '@jest/globals';
import { testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { until } from '../../support/until.js';
import { ServicePageRepository } from '../../../src/extensions/service-page/service-page.repository.js';
import { ServiceSections } from '../../../src/extensions/service-page/service-sections.js';
import { QueueMetrics } from '../../../src/platform/queue/queue-metrics.js';

const HOSTILE = '<script>alert(1)</script>"';
const PATH = '/ui/service';

const app = testApp();
let operator: BrowserSession;

beforeAll(async () => {
  operator = await signedInBrowser(app, app.operator);
});

/** The page once every section is there; those from before are read again. */
async function readPage(): Promise<string> {
  const sections = app.get(ServiceSections) as unknown as { readings: Map<string, unknown> };
  sections.readings.clear();
  return until(async () => {
    const { status, text } = await operator.get(PATH);
    expect(status).toBe(200);
    return !text.includes('Being read') && text;
  }, 'every section is read');
}

/** The text of a section. */
const sectionOf = (text: string, id: string) => {
  const [, section = ''] = new RegExp(`aria-labelledby="${id}">(.*?)</section>`, 's').exec(text) ?? [];
  return section.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
};

it('shows the checks of doctor, queues, accounts and sizes, and hostile names as text', async () => {
  const account = await app.account();
  await createConnection(app, account, { mcpUrl: 'http://127.0.0.1:9/mcp' });
  await app.database.query('UPDATE accounts SET name = $2 WHERE id = $1', [account.id, HOSTILE]);
  const text = await readPage();
  const checks = sectionOf(text, 'checks');
  for (const name of ['settings', 'folders', 'postgres', 'keys', 'login', 'API keys', 'queue', 'egress']) {
    if (name !== 'settings') expect(checks).toContain(` ${name} `);
  }
  // The keys of test accounts never expire.
  expect(checks).toMatch(/API keys warning \d+ never expire/);
  expect(text).toMatch(/<span class="badge (wait|bad)">\d+ (warning|check)/);
  expect(sectionOf(text, 'queues')).toMatch(/releases 0 0 0 0/);
  expect(sectionOf(text, 'storage')).toMatch(/Database [\d.]+ MB .* Files of releases/);
  expect(sectionOf(text, 'disk')).toMatch(/Free in DATA_DIR [\d.]+ [MGT]B/);
  expect(text).not.toContain('<script>alert');
  expect(sectionOf(text, 'accounts')).toMatch(/&lt;script.* connections 1 of 100,000/);
  expect(text).not.toContain('data-live');
});

it('lists suspensions with kind, reason and time', async () => {
  const account = await app.account();
  const { namespace } = await createConnection(app, account, { mcpUrl: 'http://127.0.0.1:9/mcp' });
  const suspension = { reason: HOSTILE, by: app.operator.id, at: '2026-11-20T10:00:00.000Z' };
  await app.database.query('UPDATE namespaces SET suspended = $2 WHERE name = $1', [namespace, suspension]);
  const sql = `UPDATE accounts SET credentials_suspended_at = now(), credentials_suspended_for = 'Gone.' WHERE id = $1`;
  await app.database.query(sql, [account.id]);
  const text = await readPage();
  expect(sectionOf(text, 'suspended')).toMatch(
    new RegExp(`${account.name} account, since .* Gone\\. .*${namespace} namespace, since 20 Nov.* &lt;script`),
  );
  expect(text).not.toContain('<script>alert');
});

it('counts waiting and failed jobs, says of a section that it failed, and shows the others', async () => {
  const states = ['waiting', 'active', 'delayed', 'failed'];
  const samples = states.map((state, at) => ({ labels: { queue: 'releases', state }, value: at + 1 }));
  const queues = jest.spyOn(app.get(QueueMetrics), 'current').mockResolvedValue(samples);
  const sizes = jest.spyOn(app.get(ServicePageRepository), 'sizes').mockRejectedValue(new Error('disk is <gone>'));
  const text = await readPage();
  expect(sectionOf(text, 'queues')).toContain('releases 1 2 3 4');
  expect(sectionOf(text, 'storage')).toContain('Failed This could not be read: disk is &lt;gone&gt;.');
  expect(sectionOf(text, 'suspended')).not.toContain('could not be read');
  queues.mockResolvedValue(null);
  sizes.mockRestore();
  const next = await readPage();
  expect(sectionOf(next, 'queues')).toContain('The store of the queues does not respond.');
  expect(sectionOf(next, 'storage')).toContain('Database');
  queues.mockRestore();
});

it('shows the sections that are there while another is being read, and reads it once', async () => {
  await readPage();
  const sections = app.get(ServiceSections) as unknown as { readings: Map<string, unknown> };
  sections.readings.delete('sizes');
  let finish = (_: never) => undefined as void;
  const slow = new Promise<never>((resolve) => (finish = resolve));
  const sizes = jest.spyOn(app.get(ServicePageRepository), 'sizes').mockReturnValue(slow);
  for (let time = 0; time < 2; time += 1) {
    const { text } = await operator.get(PATH);
    expect(sectionOf(text, 'storage')).toContain('Being read');
    expect(sectionOf(text, 'checks')).toContain('egress');
    // The page follows itself until everything is there, also without scripts.
    expect(text).toContain('<noscript><meta http-equiv="refresh"');
  }
  expect(sizes).toHaveBeenCalledTimes(1);
  finish({ database: 1024, logs: 0, logDays: [], files: 0, newFiles: 0 } as never);
  sizes.mockRestore();
  await until(
    async () => sectionOf((await operator.get(PATH)).text, 'storage').includes('Database 1 KB'),
    'it is shown',
  );
});

it('is in the navigation of operators alone', async () => {
  expect((await operator.get('/ui/')).text).toContain('href="../ui/service"');
  const person = await signedInBrowser(app, await app.account());
  expect((await person.get('/ui/')).text).not.toContain('ui/service');
  expect((await person.get(PATH)).status).toBe(403);
});
