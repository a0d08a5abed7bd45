/** `npm run settings`: writes the README's table of settings anew from the Env class. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './lib.mjs';

await ensureBuilt();
const { settingDocs } = await import(pathToFileURL(join(root, 'dist/src/config/env.js')).href);
const file = join(root, 'README.md');
const rows = settingDocs().map(
  ({ name, fallback, doc }) => `| \`${name}\` | ${fallback === null ? '' : `\`${fallback}\``} | ${doc} |`,
);
const readme = readFileSync(file, 'utf8');
const table = /(<!-- settings[^>]*-->\n+[^\n]*\n[^\n]*\n)[\s\S]*?(\n+<!-- \/settings -->)/;
writeFileSync(
  file,
  readme.replace(table, (_all, head, end) => `${head}${rows.join('\n')}${end}`),
);
process.stdout.write('README.md has the settings of the code: run `npm run format` to align the table.\n');
