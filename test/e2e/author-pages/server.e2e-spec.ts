import { beforeAll, describe, expect, it } from '@jest/globals';
import { Logs } from '../../../src/extension.js';
import { invocationId } from '../../../src/modules/logs/ingest/ingest-limits.js';
import { ServersService } from '../../../src/modules/servers/servers.service.js';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { type BrowserSession, openBrowser, signedInBrowser } from '../../support/people/browser-session.js';
import { until } from '../../support/until.js';

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

const HOSTILE = '"><script>alert(1)</script>';

let browser: BrowserSession;
let other: BrowserSession;
let name: string;
let page: string;

beforeAll(async () => {
  browser = await signedInBrowser(app, owner);
  other = await signedInBrowser(app, stranger);
  name = await createServer(app, owner, { visibility: 'private' });
  page = `/ui/s/${name.replace('/', '--')}`;
});

const rest = async () =>
  (await app.as(owner).get(`/servers/${encodeURIComponent(name)}`)).body as Record<string, unknown>;
const send = (form: string, fields: Record<string, string>, as = browser) =>
  as.submit(`${page}/settings/${form}`, fields, `${page}/settings`);

describe('the settings of a server', () => {
  it('say what the visibility means for the secrets, and change it only after a confirmation', async () => {
    const saved = await send('secret', { name: 'WEATHER_KEY', value: 's3cret-value' });
    expect([saved.status, saved.headers.location]).toEqual([303, expect.stringContaining('done=secret-saved')]);
    const { text } = await browser.get(`${page}/settings`);
    expect(text).toContain('Only you, and those you grant access, find this server and call it, with its 1 secret.');
    expect(text).toContain('<code>WEATHER_KEY</code>');
    expect(text).not.toContain('s3cret-value');
    const refused = await send('visibility', { visibility: 'public' });
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('every account calls it with them')]);
    expect(await rest()).toMatchObject({ visibility: 'private' });
    expect((await send('visibility', { visibility: 'public', confirmSecrets: 'true' })).status).toBe(303);
    expect(await rest()).toMatchObject({ visibility: 'public' });
    const open = (await browser.get(`${page}/settings?done=saved`)).text;
    expect(open).toContain('The settings are saved.');
    expect(open).toContain('Everyone with an account finds this server and calls it, with its 1 secret.');
    const shared = await send('secret', { name: 'OTHER', value: 'x' });
    expect(shared.headers.location).toContain('done=secret-saved');
    for (const secret of ['WEATHER_KEY', 'OTHER'])
      expect((await send('secret-delete', { id: secret })).status).toBe(303);
    expect((await browser.get(`${page}/settings`)).text).toContain('No secrets');
  });

  it('lead to the page that grants access', async () => {
    const { text } = await browser.get(`${page}/settings`);
    const [, link = ''] = /href="([^"]*\/access\/server\/[^"]*)"/.exec(text) ?? [];
    const access = await browser.get(new URL(link, `http://localhost${page}/settings`).pathname);
    expect([access.status, access.text.includes('Grant access')]).toEqual([200, true]);
    expect((await send('secret-delete', { id: 'OTHER' })).status).toBe(404);
  });

  it('warn of secrets that every account uses', async () => {
    const open = `/ui/s/${(await createServer(app, owner, { visibility: 'public' })).replace('/', '--')}/settings`;
    const { headers } = await browser.submit(`${open}/secret`, { name: 'SHARED', value: 'x' }, open);
    expect(headers.location).toContain('done=secret-shared');
    expect((await browser.get(`${open}?done=secret-shared`)).text).toContain('every account calls it with this secret');
  });

  it('change texts and runtime settings, and show a rejected form with its values', async () => {
    expect((await send('texts', { displayName: HOSTILE, description: HOSTILE, iconUrl: '' })).status).toBe(303);
    expect(await rest()).toMatchObject({ displayName: HOSTILE });
    for (const path of ['', '/releases', '/logs', '/settings']) {
      const { status, text } = await browser.get(page + path);
      expect([path, status, text.includes('<script>alert')]).toEqual([path, 200, false]);
    }
    const wrong = await send('texts', { displayName: '', description: 'Kept', iconUrl: '' });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringMatching(/displayName-fault"[^>]*>Title .+Kept/s)]);
    expect(
      (await send('runtime', { egressAllow: 'api.example.com\r\n*.example.org', logPayloads: 'true' })).status,
    ).toBe(303);
    const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(name)}/runtime`);
    expect(body).toEqual({ egressAllow: ['api.example.com', '*.example.org'], logPayloads: true });
    const host = await send('runtime', { egressAllow: 'http://x y', logPayloads: 'false' });
    expect([host.status, host.text]).toEqual([400, expect.stringContaining('egressAllow-fault')]);
    const secret = await send('secret', { name: '1bad', value: 'hidden-value' });
    expect([secret.status, secret.text.includes('hidden-value')]).toEqual([400, false]);
  });

  it('are for those who manage the server alone', async () => {
    expect((await openBrowser(app).get(`${page}/settings`)).headers.location).toContain('login');
    expect((await other.get(`${page}/settings`)).status).toBe(404);
    const token = await other.get('/me');
    const sent = /name="form-token" value="([^"]+)"/.exec(token.text)?.[1] ?? '';
    for (const form of ['visibility', 'texts', 'secret', 'secret-delete', 'runtime', 'delete']) {
      const fields = {
        'form-token': sent,
        visibility: 'private',
        name: 'A',
        value: 'b',
        confirm: name,
        displayName: 'x',
      };
      expect([form, (await other.post(`${page}/settings/${form}`, fields)).status]).toEqual([form, 404]);
      expect([form, (await browser.post(`${page}/settings/${form}`, fields)).status]).toEqual([form, 403]);
    }
    expect(await rest()).toMatchObject({ displayName: HOSTILE, visibility: 'public' });
  });
});

describe('the logs of a server', () => {
  it('show requests with their lines, filtered and searched', async () => {
    const [namespace, server] = name.split('/');
    const ref = await app.get(ServersService).find({ namespace, name: server }, null);
    const at = Date.now();
    const record = (id: string, tool: string, outcome: 'ok' | 'toolError', message: string) => ({
      ...{
        id: invocationId(ref.id, id, new Date(at)),
        at,
        method: 'POST',
        url: '/mcp',
        toolName: tool,
        status: 200,
        outcome,
      },
      lines: [{ at, level: 'info', message }],
      exceptions: [],
    });
    const records = [record('1', 'forecast', 'ok', 'Sunny'), record('2', 'alarm', 'toolError', `Storm ${HOSTILE}`)];
    await app.get(Logs).ingest(ref, records);
    const listed = async () => {
      const { text } = await browser.get(`${page}/logs`);
      return text.includes('Storm') && text.includes('Sunny');
    };
    await until(listed, 'the requests are listed');
    const { text } = await browser.get(`${page}/logs?search=storm&outcome=toolError`);
    expect(text).toContain('<code>alarm</code> <span class="badge bad">Tool error</span>');
    expect(text).not.toContain('Sunny');
    expect(text).not.toContain('<script>alert');
    expect((await browser.get(`${page}/logs?tool=none`)).text).toContain('Nothing found');
    expect((await other.get(`${page}/logs`)).status).toBe(404);
    expect((await openBrowser(app).get(`${page}/logs`)).headers.location).toContain('login');
  });

  it('are followed without scripts and by a stream, with at most 200 lines', async () => {
    const [namespace, server] = name.split('/');
    const ref = await app.get(ServersService).find({ namespace, name: server }, null);
    const at = Date.now();
    const lines = Array.from({ length: 250 }, (_, number) => ({
      at: at + number,
      level: 'info',
      message: `n${number}`,
    }));
    lines.push({ at: at + 1_000, level: 'warn', message: HOSTILE });
    const busy = { id: invocationId(ref.id, 'busy', new Date(at)), at, method: 'POST', url: '/mcp', status: 200 };
    await app.get(Logs).ingest(ref, [{ ...busy, toolName: 'busy', outcome: 'ok', lines, exceptions: [] }]);
    const text = await until(async () => {
      const followed = await browser.get(`${page}/logs?follow=1&tool=busy`);
      return followed.text.includes('busy: n249') && followed.text;
    }, 'the lines are listed');
    expect(text.match(/<li class="[a-z]*"><time/g)).toHaveLength(200);
    expect(text.indexOf('busy: n249')).toBeLessThan(text.indexOf('busy: n248'));
    expect(text).not.toContain('<script>alert');
    expect(text).not.toContain('class="filters');
    expect(text).toContain('<noscript><meta http-equiv="refresh"');
    const [, stream = ''] = /data-live="([^"]+)"/.exec(text) ?? [];
    expect(text).toMatch(/href="[^"]*logs\?tool=busy">Pause</);
    const path = new URL(stream, app.url + page).pathname;
    expect(path).toBe(`${page}/logs/stream`);

    // Who has seen the newest version receives no event; another reader receives one.
    const first = await browser.get(`${path}?tool=busy`);
    expect(first.headers['content-type']).toContain('text/event-stream');
    const [, id = ''] = /^id: (\S+)\ndata: changed\n/m.exec(first.text) ?? [];
    expect(id).toContain(busy.id);
    expect(first.text.match(/^data:/gm)).toHaveLength(1);
    expect((await browser.get(`${path}?tool=busy`, { 'last-event-id': id })).text).not.toContain('data:');
    expect((await other.get(path)).status).toBe(404);
  });
});

it('is deleted by its name', async () => {
  const wrong = await send('delete', { confirm: 'something' });
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining(`must be ${name}`)]);
  const { status, headers } = await send('delete', { confirm: name });
  expect([status, headers.location]).toEqual([303, expect.stringContaining('ui/publish?done=deleted')]);
  expect((await browser.get('/ui/publish?done=deleted')).text).toContain('The server is deleted.');
  expect((await browser.get(page)).status).toBe(404);
});
