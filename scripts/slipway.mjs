/** `npm run slipway -- COMMAND …`: the commands of an operator. The program reads its own arguments. */
import { prepare } from './lib.mjs';

prepare();
await import('../dist/src/cli/slipway.js');
