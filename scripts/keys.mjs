/** `npm run keys -- …`: makes and lists API keys without going through HTTP. The command reads its own arguments. */
import { prepare } from './lib.mjs';

prepare();
await import('../dist/src/cli/keys.js');
