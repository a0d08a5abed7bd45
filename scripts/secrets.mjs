/** `npm run secrets -- verify|rotate`: opens every sealed value, or seals it with the first key of `ENCRYPTION_KEYS`. */
import { prepare } from './lib.mjs';

prepare();
await import('../dist/src/cli/sealed-values.js');
