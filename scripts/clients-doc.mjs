/** `npm run clients`: writes the snippets of the MCP clients into docs/clients.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { clientsPage } from './clients-page.mjs';
import { ensureBuilt, root } from './lib.mjs';

await ensureBuilt();
const { clients } = await import(
  pathToFileURL(join(root, 'dist/src/extensions/console-pages/clients/clients.js')).href
);
const page = join(root, 'docs/clients.md');
writeFileSync(page, clientsPage(readFileSync(page, 'utf8'), clients));
process.stdout.write('Wrote docs/clients.md.\n');
