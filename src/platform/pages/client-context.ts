import type { Env } from '../../config/env.js';
import { clientAddress, type RequestOrigin } from '../http/client-address.js';
import { readOwnCookie, SESSION_COOKIE } from './browser-cookie.js';

/** The browser that sent a request. */
export interface ClientContext {
  /** Address of the client ({@link clientAddress}). */
  address: string;
  userAgent: string;
  /** The value of the session cookie; undefined without one. */
  sessionSecret: string | undefined;
}

export function clientContextOf(request: RequestOrigin, env: Env): ClientContext {
  const { cookie, 'user-agent': userAgent = '' } = request.headers;
  const address = clientAddress(request, env.trustProxy);
  return { address, userAgent, sessionSecret: readOwnCookie(env, cookie, SESSION_COOKIE) };
}
