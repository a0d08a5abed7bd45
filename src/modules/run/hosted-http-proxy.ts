import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { Env } from '../../config/env.js';
import { RESERVED_SEGMENT } from '../../config/published-clients.js';
import { HostedFailure } from '../../hosting/hosting.errors.js';
import { Hosting } from '../../hosting/hosting.js';
import { withoutOurs } from '../../hosting/mcp/hosted-channels.service.js';
import { INVOCATION_HEADER, type ProgramRef } from '../../hosting/hosting.types.js';
import { tooManyOpen } from '../../mcp/server/mcp-server.errors.js';
import { hasBody } from '../../platform/http/body/unread-body.js';
import type { StreamOwner } from '../../platform/http/event-stream.js';
import { namesType } from '../../platform/text/media-type.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { CallerLeftError, UpstreamError } from '../../mcp/protocol/mcp-errors.js';
import { asUpstreamFailure } from '../../hosting/mcp/hosted-dispatcher.js';
import type { InvocationRecord } from './invocation-record.js';

/** Limits of concurrent requests of one account, and of all accounts, in this process. */
const EACH_MAX = 256;
const ALL_MAX = 5_000;

const ADDRESS = /^\/run\/[^/?]+/;

/** Request headers that are not forwarded: hop-by-hop, credentials for Slipway, and headers of preceding proxies. */
const NOT_PASSED =
  /^(?:authorization|cookie|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|forwarded|x-forwarded-.*|x-real-ip)$/;

/** Response headers that hosted code can set: these, and `x-…` except those that browsers or Slipway interpret. */
const PASSED =
  /^(?:content-(?:type|length|encoding|language|disposition|range)|cache-control|etag|expires|last-modified|location|retry-after|vary|link|accept-ranges|allow|date|x-(?!slipway-|request-id$|accel-|frame-options$|content-type-options$|xss-|permitted-|dns-|should-retry$).*)$/;

/**
 * Hosted code responds on the origin of Slipway, which also has setup pages and the API document. Its responses therefore set no cookies
 * and no policies: `sandbox` gives its pages an opaque origin without scripts and forms, and `nosniff` keeps other content from being run
 * as a script.
 */
const ISOLATION_HEADERS = {
  'content-security-policy': 'sandbox',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-site',
  'referrer-policy': 'no-referrer',
};

/** Rounds of percent-decoding: hosted code might decode a path again. */
const DECODINGS = 3;

/** Forwards requests to hosted code; bodies stream in both directions. */
@Injectable()
export class HostedHttpProxy {
  private readonly limiter = new KeyedLimiter(EACH_MAX, ALL_MAX);

  constructor(
    private readonly hosting: Hosting,
    private readonly env: Env,
    private readonly revocationRegistry: RevocationRegistry,
  ) {}

  /**
   * Resolves at the end of the response, even if it was interrupted.
   *
   * @param request with its canonical URL
   * @throws TooManyError; UpstreamFailure without a response
   */
  async forward(
    ref: ProgramRef,
    { slug, accountId, keyId, grant }: { slug: string; grant?: { id: string | null } } & StreamOwner,
    request: IncomingMessage,
    response: ServerResponse,
    record: InvocationRecord,
  ): Promise<void> {
    const leave = this.limiter.acquire(accountId);
    if (!leave) throw tooManyOpen('requests');
    const forget = this.revocationRegistry.addCall(response, [keyId, grant?.id]);
    // A call without a response might have had effects, so it can finish.
    const release = this.revocationRegistry.add(keyId, () => {
      if (response.headersSent) response.destroy();
    });
    try {
      await new Promise<void>((resolve, reject) => {
        const answer = new ProxiedResponse(response, `/run/${slug}`, record, resolve, reject);
        const { method = 'GET', url = '', headers } = request;
        const { host, protocol } = new URL(this.env.baseUrl);
        // A broken upload is handled where the body is read; without a listener here it would crash the process.
        request.on('error', () => undefined);
        const passed = Object.entries(headers).filter(([name, value]) => value !== undefined && !NOT_PASSED.test(name));
        this.hosting.dispatch(
          ref,
          {
            method,
            path: url.replace(ADDRESS, ''),
            headers: {
              ...withoutOurs(Object.fromEntries(passed) as Record<string, string | string[]>),
              host,
              'x-forwarded-proto': protocol.slice(0, -1),
              'x-forwarded-prefix': `/run/${slug}`,
              [INVOCATION_HEADER]: record.invocationId,
            },
            ...(hasBody(request) ? { body: request } : {}),
            isStream: method === 'GET' && namesType(headers.accept, 'text/event-stream'),
          },
          answer,
        );
      });
    } finally {
      forget();
      release();
      leave();
    }
  }
}

/** Forwards the response of hosted code, with backpressure. */
class ProxiedResponse implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private isOver = false;
  private hasLeft = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly prefix: string,
    private readonly record: InvocationRecord,
    private readonly resolve: () => void,
    private readonly reject: (error: Error) => void,
  ) {
    if (response.destroyed) this.onClose();
    else response.once('close', this.onClose);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.hasLeft) controller.abort(new CallerLeftError());
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.isOver) return;
    const passed = Object.entries(headers).filter(([name, value]) => value !== undefined && PASSED.test(name));
    const { location } = headers;
    this.response.writeHead(status, {
      ...(Object.fromEntries(passed) as Record<string, string | string[]>),
      ...(location?.startsWith('/') && !location.startsWith('//') ? { location: `${this.prefix}${location}` } : {}),
      ...ISOLATION_HEADERS,
    });
    this.response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver || this.response.write(chunk)) return;
    controller.pause();
    this.response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    if (this.isOver) return;
    this.markOver();
    this.response.end();
    this.resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.isOver) return;
    this.markOver();
    const failure = error instanceof HostedFailure ? asUpstreamFailure(error) : error;
    if (this.response.headersSent) {
      this.record.markBroken(failure);
      this.response.destroy();
      this.resolve();
    } else {
      this.reject(failure === error ? new UpstreamError(BROKEN, { detail: error, outcomeUnknown: true }) : failure);
    }
  }

  private readonly onClose = (): void => {
    if (this.isOver) return;
    this.markOver();
    this.hasLeft = true;
    const reason = new CallerLeftError();
    this.record.failed(reason);
    this.controller?.abort(reason);
    this.resolve();
  };

  private markOver(): void {
    this.isOver = true;
    this.response.off('close', this.onClose);
  }
}

const BROKEN = 'The hosted code broke off before it answered: its author finds why in the logs of the server.';

/**
 * Returns true for a path that only Slipway itself may request, in any spelling: percent-encoded several times, in compatibility letters, after
 * empty segments and dots, with trailing dots or spaces. The name is reserved in every segment, since dots can lead back to the first one.
 *
 * @param path the path to forward; its query is ignored
 */
export function isReserved(path: string): boolean {
  let plain = path.split(/[?#]/, 1)[0].replace(/%(?:25)+/g, '%');
  for (let round = 0; round < DECODINGS; round += 1) {
    plain = plain.replace(/(?:%[0-9a-f]{2})+/gi, (escaped) =>
      Buffer.from(escaped.replaceAll('%', ''), 'hex').toString(),
    );
  }
  const segments = plain.normalize('NFKC').toLowerCase().split(/[/\\]/);
  return segments.some((segment) => trimSegment(segment) === RESERVED_SEGMENT);
}

/** Removes what servers ignore: parameters, control characters, and dots and spaces at the ends of a segment. */
function trimSegment(segment: string): string {
  const [visible] = segment.replace(/\p{C}/gu, '').split(/[;?#]/, 1);
  return visible.replace(/^[. ]+/, '').replace(/(?<![. ])[. ]+$/, '');
}
