import { createRequire } from 'node:module';

const manifest = createRequire(import.meta.url)('slipway/package.json') as { version: string; commit?: string };

export const VERSION = manifest.version;

/** `User-Agent` of every request that leaves the service (RFC 9110, 10.1.5): firewalls reject requests without one. */
export const USER_AGENT = `Slipway/${VERSION.split('.').slice(0, 2).join('.')}`;

/** Commit of the code, which the build of the container image adds to package.json. */
export const COMMIT = manifest.commit ?? 'unknown';
