import { createRequire } from 'node:module';

const own = createRequire(import.meta.url)('slipway/package.json') as { version: string };

/** Version of the service, as package.json has it. */
export const VERSION = own.version;
