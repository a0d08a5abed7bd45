import type * as Sdk from '@modelcontextprotocol/client';
import { lazyRequire } from '../../platform/lazy-require.js';

/**
 * The client SDK, whose OAuth functions are used. With zod it is a tenth of the service's code, so it is loaded lazily.
 */
export const sdk = lazyRequire<typeof Sdk>('@modelcontextprotocol/client');
