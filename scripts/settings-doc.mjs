/** `npm run settings`: writes docs/reference/settings.md from the Env class, and docs/reference/troubleshoot.md from the checks of the start. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt, root } from './lib.mjs';
import { settingsPage, troubleshootPage } from './settings-page.mjs';

await ensureBuilt();
const load = (file) => import(pathToFileURL(join(root, 'dist/src', file)).href);
const { settingDocs } = await load('config/env.js');
const { checksByPart } = await load('platform/checks/surroundings.js');
writeFileSync(join(root, 'docs/reference/settings.md'), settingsPage(settingDocs()));
writeFileSync(join(root, 'docs/reference/troubleshoot.md'), troubleshootPage(checksByPart));
process.stdout.write('Wrote docs/reference/settings.md and docs/reference/troubleshoot.md.\n');
