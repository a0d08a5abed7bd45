import { Injectable } from '@nestjs/common';
import { Egress } from '../../platform/egress/egress.js';
import { follow, readWithin, type FollowOptions } from '../../platform/egress/follow.js';
import { withTimeout } from '../../platform/limits/with-timeout.js';

/** A request of {@link Http.fetch}. @stability preview */
export interface HttpOptions extends Partial<Pick<FollowOptions, 'method' | 'headers' | 'body'>> {
  /** Timeout of the request, including the response. Default: 30 s. */
  timeoutMs?: number;
  /** Maximum size of the response body in bytes. Default: 1 MB. */
  bytesMax?: number;
}

/**
 * Outgoing requests to URLs from users.
 *
 * @stability preview
 * @example
 * // Sends an event to the URL that a user has entered.
 * export class WebhooksService {
 *   constructor(private readonly http: Http) {}
 *
 *   async send(url: string, event: object): Promise<boolean> {
 *     const headers = { 'content-type': 'application/json' };
 *     const { ok } = await this.http.fetch(url, { method: 'POST', headers, body: JSON.stringify(event) });
 *     return ok;
 *   }
 * }
 */
export abstract class Http {
  /**
   * Sends a request under the egress policy (`EGRESS_ALLOW`, `EGRESS_PROXY`) and returns the response with its whole body. Follows
   * at most 5 redirects of a `GET`, each checked again.
   *
   * @throws EgressRefusedError, RedirectRefusedError (also of another method); Error for a larger body; TimeoutError; the error of
   * the socket
   */
  abstract fetch(url: string | URL, options?: HttpOptions): Promise<Response>;

  /**
   * Checks that the policy lets this service call a URL. For a module that passes the URL to another service. A host that DNS does
   * not know here passes, and one whose lookup takes longer than 5 s.
   *
   * @throws EgressRefusedError
   */
  abstract check(url: string | URL): Promise<void>;
}

const LOCATE_MS = 5_000;

const unknown = { refusal: null };

@Injectable()
export class EgressHttp implements Http {
  constructor(private readonly egress: Egress) {}

  async check(url: string | URL): Promise<void> {
    const located = this.egress.locate(this.egress.check(url));
    const { refusal } = await withTimeout(LOCATE_MS, located, unknown).catch(() => unknown);
    if (refusal) throw refusal;
  }

  async fetch(url: string | URL, options: HttpOptions = {}): Promise<Response> {
    const { method = 'GET', headers = {}, body, timeoutMs = 30_000, bytesMax = 1024 * 1024 } = options;
    const limits = { signal: AbortSignal.timeout(timeoutMs), redirectsMax: method === 'GET' ? 5 : 0 };
    const { answer } = await follow(this.egress, this.egress.check(url), { method, headers, body, ...limits });
    const bytes = await readWithin(answer.body, bytesMax);
    if (bytes === null) throw new Error(`The response of ${String(url)} exceeds ${bytesMax} bytes`);
    const [status, sent] = [answer.statusCode, answer.headers as Record<string, string>];
    return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers: sent });
  }
}
