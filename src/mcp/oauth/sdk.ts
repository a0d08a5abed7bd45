import type * as Sdk from '@modelcontextprotocol/client';
import { lazyRequire } from '../../platform/lazy-require.js';

/** The SDK, loaded lazily: with zod, it is a tenth of the service's code. */
export const sdk = lazyRequire<typeof Sdk>('@modelcontextprotocol/client');
