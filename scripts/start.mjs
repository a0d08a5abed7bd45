/** `npm start`: installs and builds what is missing, then becomes the service (same process, so signals reach it). */
import { prepare } from './lib.mjs';

prepare();
await import('../dist/src/main.js');
