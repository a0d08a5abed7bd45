/**
 * `npm run pictures` writes the pictures of the documentation anew: it starts the service, makes a connection that needs
 * values of its end user, and photographs the page of its `setupUrl` in Chromium (CHROMIUM_PATH, or /usr/bin/chromium).
 */
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { runBench, startEcho, startService } from '../bench/run.mjs';
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

await runBench(async () => {
  const [service, echo] = await Promise.all([startService(), startEcho()]);
  await service.request('PUT', '/namespaces/acme');
  await service.publish('acme/weather', { type: 'external', upstreamUrl: echo.url, configSchema });
  const { status } = await service.request('PUT', '/connect/acme/weather-ann', { server: 'acme/weather' });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox'],
  });
  const page = await browser.newPage({ viewport: { width: 720, height: 420 }, deviceScaleFactor: 1.5 });
  await page.goto(status.setupUrl);
  const file = 'docs/setup-page.png';
  await page.screenshot({ path: join(root, file), fullPage: true });
  await browser.close();
  process.stdout.write(`${file}\n`);
});
