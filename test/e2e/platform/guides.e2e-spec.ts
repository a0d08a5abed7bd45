import { readdirSync } from 'node:fs';
import { expect } from '@jest/globals';
import { testApp } from '../../support/app.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();

const root = new URL('../../../', import.meta.url);

verifies('docs:guides', 'every page of the documentation is read as text, without a key, and linked', async () => {
  const paths = readdirSync(new URL('docs/', root))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `/docs/${file}`)
    .sort();
  expect(paths.length).toBeGreaterThan(10);
  const start = (await (await fetch(app.url)).json()) as { guides: string[] };
  expect(start.guides).toEqual(paths);
  const { info } = (await (await fetch(`${app.url}/openapi.json`)).json()) as { info: { description: string } };
  expect([...info.description.matchAll(/\]\((\/docs\/[^)]+)\)/g)].map(([, path]) => path).sort()).toEqual(paths);
  for (const path of paths) {
    const answer = await fetch(app.url + path);
    expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, 'text/plain; charset=utf-8']);
    expect(await answer.text()).toMatch(/^# \w/m);
  }
  for (const path of ['/docs/none.md', '/docs/..%2Fpackage.json', '/docs/%2E%2E%2FREADME.md']) {
    expect((await fetch(app.url + path)).status).toBe(404);
  }
});
