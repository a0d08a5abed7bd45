import type { IncomingHttpHeaders } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { Env } from '../../config/env.js';
import { OutcomeUnknownError } from '../../platform/internal-http/error-codec.js';
import { InternalClient, RequestRefusedError } from '../../platform/internal-http/internal-client.js';
import { HostAwayError, HostingUnavailableError, ProgramCrashedError } from '../hosting.errors.js';
import type { HostedRequest, ProgramRef } from '../hosting.types.js';
import type { LiveHost } from './host-directory.js';
import type { AttemptHandler } from './retrying-dispatch.js';

export interface HostRequestHead {
  ref: ProgramRef;
  request: Omit<HostedRequest, 'body'>;
}

/** Time beyond the program's own limit: for its start, and for the process that enforces the limit. */
const GRACE_MS = 15_000;

@Injectable()
export class HostClient {
  constructor(
    private readonly internalClient: InternalClient,
    private readonly env: Env,
  ) {}

  send(host: LiveHost, ref: ProgramRef, { body, ...request }: HostedRequest, handler: AttemptHandler): void {
    const head: HostRequestHead = { ref, request };
    if (typeof body === 'string' || Buffer.isBuffer(body)) {
      head.request.headers = { ...request.headers, 'content-length': String(Buffer.byteLength(body)) };
    }
    let controller: Dispatcher.DispatchController | null = null;
    this.internalClient.send(
      {
        url: host.url ?? '',
        path: `/internal/hosting/${host.id}/${host.epoch}`,
        head,
        body,
        answerTimeoutMs: request.isStream ? 0 : this.env.runtimeWallMs + GRACE_MS,
      },
      {
        onStart: (started) => {
          controller = started;
          handler.onRequestStart(started);
        },
        onHead: (value) => {
          const { status, headers } = value as { status: number; headers: IncomingHttpHeaders };
          handler.onResponseStart(controller, status, headers);
        },
        onData: (chunk) => handler.onResponseData(controller, chunk),
        onEnd: () => handler.onResponseEnd(),
        onFailure: (error) => handler.onResponseError(null, asHostedFailure(error)),
      },
    );
  }
}

function asHostedFailure(error: Error): Error {
  if (error instanceof OutcomeUnknownError) return new ProgramCrashedError(error.message);
  if (!(error instanceof RequestRefusedError)) return error;
  if (error.clockSeconds !== null) {
    return new HostingUnavailableError(
      `The clocks of two processes of this service differ by ${error.clockSeconds} s: its operator must set them.`,
    );
  }
  return new HostAwayError('The process that runs this program did not take the request: try again.', 1);
}
