import type * as Sdk from '@modelcontextprotocol/client';
import { lazyRequire } from '../../platform/lazy-require.js';

/** The client SDK, a tenth of the service's code with zod, whose OAuth functions are used. */
export const sdk = lazyRequire<typeof Sdk>('@modelcontextprotocol/client');
