/** `npm run settings`: writes docs/settings.md from the Env class. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './lib.mjs';
import { settingsPage } from './settings-page.mjs';

await ensureBuilt();
const { settingDocs } = await import(pathToFileURL(join(root, 'dist/src/config/env.js')).href);
writeFileSync(join(root, 'docs/settings.md'), settingsPage(settingDocs()));
process.stdout.write('Wrote docs/settings.md from src/config/env.ts.\n');
