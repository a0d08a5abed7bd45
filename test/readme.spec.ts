import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { settingDocs } from '../src/config/env.js';

it('the settings in the README are those of the code', async () => {
  const readme = await readFile('README.md', 'utf8');
  const table = /<!-- settings[^>]*-->\n+([\s\S]*?)\n+<!-- \/settings -->/.exec(readme)?.[1] ?? '';
  const cells = table
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  expect(cells).toEqual(
    settingDocs().map(({ name, fallback, doc }) => [`\`${name}\``, fallback === null ? '' : `\`${fallback}\``, doc]),
  );
});
