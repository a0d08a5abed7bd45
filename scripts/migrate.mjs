/** `npm run migrate`: brings the database up to date and ends, for deployments that start with `MIGRATE=off`. */
import { prepare } from './lib.mjs';

prepare();
await import('../dist/src/cli/migrate.js');
