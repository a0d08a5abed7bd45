import type * as Sdk from '@modelcontextprotocol/client';
import { lazyRequire } from '../../platform/lazy-require.js';

/** With zod, the SDK is a tenth of the service's code, so it is loaded lazily. */
export const sdk = lazyRequire<typeof Sdk>('@modelcontextprotocol/client');
