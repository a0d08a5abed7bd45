import type { IncomingMessage } from 'node:http';
import { SetMetadata } from '@nestjs/common';
import type { GrantedRequest } from './access.decorator.js';

/** Metadata key of a route on the fast path. */
export const FAST_PATH = 'slipway:fast-path';

/**
 * Serves a route ahead of Express and Nest's pipeline, which cost about as much as the rest of a tool call. The route is
 * declared, documented and authorized like any other. Its handler gets the raw request, with `params` and `grant`, and the
 * raw response; errors are answered in the format of its path. Guards, pipes, interceptors and exception filters do not
 * run, so the start fails for a route that has one.
 */
export function FastPath(): MethodDecorator {
  return SetMetadata(FAST_PATH, true);
}

/** What a {@link FastPath} handler receives. `*name` parameters are arrays of decoded segments. */
export type FastPathRequest = IncomingMessage & GrantedRequest & { params: Record<string, string | string[]> };
