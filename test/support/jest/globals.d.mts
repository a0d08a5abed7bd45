import type { it } from '@jest/globals';

export declare const longIt: typeof it;
