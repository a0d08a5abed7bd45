/** `npm run clients`: writes the snippets of the MCP clients into docs/guides/clients.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { clientsPage } from './clients-page.mjs';
import { ensureBuilt, root } from './lib.mjs';

await ensureBuilt();
const { clients } = await import(
  pathToFileURL(join(root, 'dist/src/extensions/console-pages/clients/clients.js')).href
);
const page = join(root, 'docs/guides/clients.md');
writeFileSync(page, clientsPage(readFileSync(page, 'utf8'), clients));
process.stdout.write('Wrote docs/guides/clients.md.\n');
