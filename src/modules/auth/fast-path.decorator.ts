import type { IncomingMessage } from 'node:http';
import { SetMetadata } from '@nestjs/common';
import type { GrantedRequest } from './access.decorator.js';

/** Metadata key of a route that is served directly. */
export const DIRECT = 'slipway:direct';

/**
 * Serves a route ahead of Express and Nest's pipeline, which cost about as much as the rest of a tool call. Everything
 * else stays as it is: the route is declared, documented and guarded like any other. The handler gets the raw request,
 * with `params` and `grant`, and the raw response; what it throws is answered in the family of its path.
 */
export function FastPath(): MethodDecorator {
  return SetMetadata(DIRECT, true);
}

/** What a {@link FastPath} handler receives. `*name` parameters are arrays of decoded segments. */
export type DirectRequest = IncomingMessage & GrantedRequest & { params: Record<string, string | string[]> };
