import type { Dispatcher } from 'undici';
import type { HttpDispatcher } from '../../mcp/client/http/http-exchange.js';
import {
  HostedAwayError,
  NotHostedError,
  UpstreamBusyError,
  UpstreamError,
  UpstreamTimeoutError,
  type UpstreamFailure,
} from '../../mcp/protocol/mcp-errors.js';
import {
  HostAwayError,
  HostedFailure,
  HostingUnavailableError,
  LimitExceededError,
  ProgramBusyError,
} from '../hosting.errors.js';
import { passingTo, type Hosting } from '../hosting.js';
import { INVOCATION_HEADER, RPC_METHOD_HEADER, type ProgramRef } from '../hosting.types.js';

const RPC_METHOD = /^\{"jsonrpc":"2\.0",(?:"id":\d+,)?"method":"([\w/$.-]{1,100})"/;

/** Sends requests to programs. The origin of the URL names the program; nothing connects to this origin. */
export class HostedDispatcher implements HttpDispatcher {
  /** @param host host name that the code sees as its own */
  constructor(
    private readonly hosting: Hosting,
    private readonly ref: ProgramRef,
    private readonly host: string,
  ) {}

  dispatch(
    url: URL,
    { method, headers, body, dispatcherKind }: Parameters<HttpDispatcher['dispatch']>[1],
    handler: Dispatcher.DispatchHandler,
  ): void {
    const text = typeof body === 'string' ? body : undefined;
    const rpcMethod = INVOCATION_HEADER in headers || text === undefined ? undefined : RPC_METHOD.exec(text)?.[1];
    const request = {
      method,
      path: url.pathname + url.search,
      headers: { ...headers, host: this.host, ...(rpcMethod === undefined ? {} : { [RPC_METHOD_HEADER]: rpcMethod }) },
      body: text,
      isStream: dispatcherKind === 'stream',
    };
    this.hosting.dispatch(this.ref, request, {
      ...passingTo(handler),
      onResponseError: (controller, error) =>
        handler.onResponseError?.(controller, error instanceof HostedFailure ? asUpstreamFailure(error) : error),
    });
  }

  lastConnect(): undefined {
    return undefined;
  }
}

/** Converts a hosting failure to an upstream failure, with the original as its detail. */
export function asUpstreamFailure(failure: HostedFailure): UpstreamFailure {
  const { message, mayHaveRun } = failure;
  if (failure instanceof HostingUnavailableError) return new NotHostedError(message, failure);
  if (failure instanceof HostAwayError) return new HostedAwayError(message, failure.retryAfterSeconds, failure);
  if (failure instanceof ProgramBusyError) return new UpstreamBusyError(message, failure);
  if (failure instanceof LimitExceededError && failure.outcome === 'exceededWall') {
    return new UpstreamTimeoutError(message, true, failure);
  }
  return new UpstreamError(message, { detail: failure, outcomeUnknown: mayHaveRun });
}
