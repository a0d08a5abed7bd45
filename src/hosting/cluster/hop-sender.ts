import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Agent, type Dispatcher } from 'undici';
import { Env } from '../../config/env.js';
import { INTERNAL_HEADER, InternalSignatures } from '../../platform/internal-http/internal-signatures.js';
import { HostAwayError, ProgramCrashedError } from '../hosting.errors.js';
import type { HostedRequest, ProgramRef } from '../hosting.types.js';
import type { LiveHost } from './host-directory.js';
import { FrameReader, type HopFrame, type HopHead } from './hop-frames.js';
import type { PlacedHandler } from './placed-handler.js';
import { fromWire } from './wired-failure.js';

/** What is not answered at all by then comes from no process of ours. */
const CONNECT_MS = 2_000;

/** Beyond the time a program has: for its start, and for the process that keeps that time. */
const GRACE_MS = 15_000;

/** When the socket says so, nothing was sent. */
const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/**
 * Sends requests to programs in other processes, signed. They go to addresses the operator gave (`ADVERTISE_URL`), which
 * are private ones as a rule, so they do not pass the wall that keeps tenants' requests away from those.
 *
 * What is signed is the head: whose program, method, path, headers, and the digest of a body that is there as a whole, as
 * those of all MCP calls are. The other side streams such a body on and keeps its last piece back until the digest is
 * right, so no program ever sees the end of one that was changed. A body that streams has no digest yet: who can change
 * bytes between two processes could read them as well, and there the wall is `https` in `ADVERTISE_URL`.
 */
@Injectable()
export class HopSender implements OnApplicationShutdown {
  private readonly logger = new Logger('hosting');
  private readonly agent = new Agent({ connect: { timeout: CONNECT_MS }, bodyTimeout: 0 });

  constructor(
    private readonly signatures: InternalSignatures,
    private readonly env: Env,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.agent.destroy();
  }

  /** Sends one request to a host that says where it is reached. What fails goes to the handler. */
  send(host: LiveHost, ref: ProgramRef, request: HostedRequest, handler: PlacedHandler): void {
    const { body, ...rest } = request;
    const known = body === undefined || body instanceof Readable ? null : Buffer.from(body);
    const head: HopHead = {
      ref,
      request: known ? withLength(rest, known) : rest,
      body: body === undefined ? null : { sha256: known && digestOf(known) },
    };
    const text = JSON.stringify(head);
    const begin = framed(text);
    const path = `/internal/hosting/${host.id}`;
    const { origin, pathname } = new URL(host.url ?? '');
    this.agent.dispatch(
      {
        origin,
        path: `${pathname === '/' ? '' : pathname}${path}`,
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream', [INTERNAL_HEADER]: this.signatures.sign(path, text) },
        body:
          body instanceof Readable ? Readable.from(following(begin, body), { objectMode: false }) : join(begin, known),
        headersTimeout: request.isStream ? 0 : this.env.runtimeWallMs + GRACE_MS,
      },
      new Hop(handler, this.logger),
    );
  }
}

/** One request on its way to another process, and the answer on its way back. */
class Hop implements Dispatcher.DispatchHandler {
  private readonly reader = new FrameReader((frame) => this.onFrame(frame));
  private controller: Dispatcher.DispatchController | null = null;
  private status = 0;
  private isEnded = false;
  private failure: Error | null = null;

  constructor(
    private readonly handler: PlacedHandler,
    private readonly logger: Logger,
  ) {}

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.handler.onRequestStart(controller);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200) this.status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.status === 200) this.reader.push(chunk);
  }

  onResponseEnd(): void {
    if (this.isEnded) return this.handler.onResponseEnd();
    if (this.failure) return this.handler.fail(this.failure);
    if (this.status === 200) return this.handler.fail(broken());
    this.logger.warn({
      msg: 'a host refused a request of this process: ENCRYPTION_KEYS must be the same and clocks agree to 30 s',
      status: this.status,
    });
    this.handler.fail(new HostAwayError('The process that runs this program did not take the request: try again.', 1));
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    if (controller?.aborted && this.controller) return this.handler.fail(controller.reason ?? error);
    const { code = '' } = error as NodeJS.ErrnoException;
    this.logger.debug({ msg: 'a request to another process broke off', err: error });
    if (this.failure) this.handler.fail(this.failure);
    else if (NOT_SENT.test(code)) this.handler.unreached();
    else this.handler.fail(broken());
  }

  private onFrame(frame: HopFrame): void {
    const { controller } = this;
    switch (frame.kind) {
      case 'head':
        return this.handler.onResponseStart(controller, frame.head.status, frame.head.headers);
      case 'data':
        return this.handler.onResponseData(controller, frame.data);
      case 'end':
        this.isEnded = true;
        return;
      case 'failure':
        this.failure = fromWire(frame.failure);
    }
  }
}

function broken(): ProgramCrashedError {
  return new ProgramCrashedError(
    'The process that runs this program ended, or did not answer in time: whether the request was carried out is unknown.',
  );
}

function withLength(request: HopHead['request'], body: Buffer): HopHead['request'] {
  return { ...request, headers: { ...request.headers, 'content-length': String(body.length) } };
}

function digestOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url');
}

function join(head: Buffer, body: Buffer | null): Buffer {
  return body ? Buffer.concat([head, body]) : head;
}

/** The body is not touched before the head is on its way, so that it can go elsewhere when nobody takes it. */
async function* following(head: Buffer, body: Readable): AsyncGenerator<unknown> {
  yield head;
  yield* body;
}

/** Four bytes of length, and the head. */
function framed(text: string): Buffer {
  const head = Buffer.from(text);
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head]);
}
