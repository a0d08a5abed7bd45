/** `npm run openapi`: writes `openapi.summary.txt`, one line for each operation of the API document that the build has written. */
import { writeFileSync } from 'node:fs';
import { prepare } from './lib.mjs';
import { openApiSummary, summaryFile } from './openapi-summary.mjs';

prepare();
writeFileSync(summaryFile, openApiSummary());
