/**
 * `npm run lab pictures` writes the pictures of the documentation again: it starts the service, fills it, and photographs in Chromium
 * (CHROMIUM_PATH, or /usr/bin/chromium) the page of a `setupUrl`, and pages of the console at 1280 and 390 px, side by side.
 */
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { apiOf, runBench, startEcho, startService } from '../bench/run.mjs';
import { root } from './lib.mjs';

const configSchema = {
  type: 'object',
  required: ['apiKey'],
  properties: {
    apiKey: {
      type: 'string',
      title: 'API key',
      description: 'From the settings of your weather account.',
      'x-from': { header: 'x-weather-key' },
      'x-to': { header: 'x-api-key' },
    },
  },
};

/** Pages of the console, by name of the picture. */
const pages = {
  home: '/ui/',
  catalogue: '/ui/catalogue',
  connection: '/ui/c/acme/calendar?client=cursor',
  organization: '/ui/o/Acme',
  account: '/me',
  publish: '/ui/publish',
  server: '/ui/s/acme--weather/releases',
};

/** Makes an organization with its servers, and Ann, one of its owners. @returns her key, and the setup page of a connection */
async function fill(service, echo) {
  const { request } = service;
  const account = (name, kind) => request('POST', '/accounts', { name, kind });
  const acme = await account('Acme', 'organization');
  const people = {};
  for (const [name, role] of Object.entries({ ann: 'owner', bob: 'editor', carol: 'member' })) {
    const { id } = await account(name, 'user');
    const { key } = await request('POST', `/accounts/${id}/api-keys`, { name: 'laptop' });
    people[name] = { id, key, ...apiOf({ ...service, key }) };
    await request('PUT', `/accounts/${acme.id}/members/${id}`, { role });
  }
  const { ann, bob } = people;
  await ann.request('PUT', '/namespaces/acme', { organizationId: acme.id });
  await bob.request('PUT', '/namespaces/bob');
  for (const [by, name, description, visibility, payload] of [
    [ann, 'acme/weather', 'Forecasts and warnings for every place.', 'public', { configSchema }],
    [ann, 'acme/tickets', 'Finds, opens and closes tickets of the help desk.', 'restricted', {}],
    [bob, 'bob/translate', 'Translates documents, and explains why.', 'restricted', {}],
  ]) {
    await by.publish(name, { type: 'external', upstreamUrl: echo.url, ...payload });
    const displayName = name.replace(/.*\/(.)/, (_, first) => first.toUpperCase());
    await by.request('PATCH', `/servers/${encodeURIComponent(name)}`, { displayName, description, visibility });
  }
  await ann.connect('acme', 'calendar', echo.url);
  const { status } = await ann.request('PUT', '/connect/acme/weather-ann', { server: 'acme/weather', name: 'Weather' });
  await ann.request('POST', '/connect/acme/calendar/.tools/echo', { message: 'hi' });
  await bob.request('PUT', '/connect/bob/wiki', { mcpUrl: echo.url, name: 'Wiki' });
  const dave = await account('dave', 'user');
  const { key } = await request('POST', `/accounts/${dave.id}/api-keys`, { name: 'laptop' });
  await bob.request('POST', '/connect/bob/wiki/grants', { account: ann.id, level: 'call', tools: { allow: ['echo'] } });
  await ann.request('POST', '/connect/acme/calendar/grants', { account: dave.id, level: 'call' });
  await ann.request('POST', `/accounts/${acme.id}/api-keys`, { name: 'nightly report' });
  await apiOf({ ...service, key }).request('POST', '/servers/acme%2Ftickets/access-requests', {
    text: 'I answer tickets of the shop from next week on.',
  });
  return { key: ann.key, setupUrl: status.setupUrl };
}

await runBench(async () => {
  const env = {
    PUBLIC_URL: 'http://slipway.example.com',
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  };
  const [service, echo] = await Promise.all([startService({ env }), startEcho()]);
  const { key, setupUrl } = await fill(service, echo);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', `--host-resolver-rules=MAP slipway.example.com ${new URL(service.url).host}`],
  });
  const written = (file) => process.stdout.write(`${file}\n`);
  const setup = await browser.newPage({ viewport: { width: 720, height: 420 }, deviceScaleFactor: 1.5 });
  await setup.goto(setupUrl);
  await setup.screenshot({ path: join(root, 'docs/pictures/setup-page.png'), fullPage: true });
  written('docs/pictures/setup-page.png');
  const page = await browser.newPage();
  await page.goto(`${env.PUBLIC_URL}/login`);
  await page.getByText('Use an API key instead').click();
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in with this key' }).click();
  const sheet = await browser.newPage({ viewport: { width: 1280 + 390 + 32, height: 716 } });
  for (const [name, path] of Object.entries(pages)) {
    const shots = [];
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 700 });
      await page.goto(env.PUBLIC_URL + path);
      shots.push((await page.screenshot()).toString('base64'));
    }
    const images = shots.map((shot) => `<img style="flex: none" src="data:image/png;base64,${shot}">`);
    await sheet.setContent(
      `<!doctype html><body style="margin: 8px; display: flex; gap: 16px; background: #ddd">${images.join('')}`,
    );
    const file = `docs/pictures/console-${name}.png`;
    await sheet.screenshot({ path: join(root, file), fullPage: true });
    written(file);
  }
  await browser.close();
});
