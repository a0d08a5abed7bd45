/** `npm run openapi [-- file]`: writes the OpenAPI document, by default to the committed openapi.json. */
import { join } from 'node:path';
import { prepare, root } from './lib.mjs';

prepare();
process.argv[2] ??= join(root, 'openapi.json');
await import('../dist/src/cli/openapi.js');
