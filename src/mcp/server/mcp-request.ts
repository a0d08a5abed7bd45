import type { IncomingMessage } from 'node:http';
import type { Cancellation } from '../protocol/cancellation.js';
import type { CallOrigin, CallTiming, Channel, McpReply } from '../protocol/channel.js';
import type { McpRequestHeaders } from './classify.js';
import type { ClientSession } from './sessions/session-ids.js';
import type { ErrorReader } from '../../platform/errors/domain-error.js';
import type { HoldingGrant } from '../../platform/http/revocation-registry.js';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import { statusOf } from '../../platform/errors/domain-error.js';
import { domainErrorOf } from '../../platform/errors/error-body.js';

export interface CountedRequest extends IncomingMessage {
  /**
   * Counts the further messages of a batch as requests of the caller; absent if nothing is counted. @throws
   * TooManyError
   */
  countMore?: (requests: number) => void;
}

export interface McpRequestContext {
  text: string;
  /** True when the client accepts an event stream as the response. */
  acceptsStream: boolean;
  headers: McpRequestHeaders;
  header: (name: string) => string | undefined;
  /** Account of the key: limits apply per account, since it can have any number of keys. */
  account: string;
  /**
   * Id of the API key, or of an OAuth token's client authorization: sessions are bound to it, and streams close with
   * it.
   */
  principal: string;
  /** Grant that opened the endpoint to the account; absent for the account's own and for public endpoints. */
  grant?: HoldingGrant;
  /** Rights of the credential; null: all rights of the account. */
  scopes: ErrorReader['scopes'];
  loginsEpoch?: ErrorReader['loginsEpoch'];
  /** Name of the addressed endpoint; sessions are bound to it. */
  target: string;
  /** The scope in which a caller can cancel its calls. */
  caller: string;
  /** Legacy session of the request; null without one, until it is found, and for requests of MCP 2026-07-28. */
  session: ClientSession | null;
  /** Finds the session that the request names; null without one. @throws McpSessionNotFoundError */
  findSession: (() => ClientSession | Promise<ClientSession>) | null;
  /** Finds the channel again after it has changed; absent for a request in this process. @throws errors of the target */
  reopen?: () => Promise<Channel>;
  /** The caller, with the client's name as soon as it is known. */
  origin: CallOrigin;
  /** Cancelled when the client disconnects. */
  cancellation: Cancellation;
  observer?: CallObserver;
  countMore: CountedRequest['countMore'];
}

/** Returns the origin of a request, before the name of the client is known. @param endpoint set for OAuth tokens */
export function originOf({
  accountId,
  keyId,
  endpoint,
  isSession,
}: {
  accountId: string;
  keyId: string;
  endpoint?: string;
  isSession?: true;
}): CallOrigin {
  const ofProgram = endpoint === undefined ? 'key' : 'oauth';
  return { account: accountId, kind: isSession ? 'session' : ofProgram, credential: keyId, client: null };
}

export interface CallObserver {
  /** Called once the message was parsed. The method is null for a client's response. */
  received(method: string | null, params: unknown): void;
  /** Called with the upstream's reply, even if it is a JSON-RPC error. */
  recordReply?(reply: McpReply): void;
  /**
   * Called when the upstream failed or was not called. A JSON-RPC error of the upstream is a response, not a failure.
   */
  failed(error: Error): void;
  readonly timing?: CallTiming;
  readonly invocationId?: string;
  readonly origin?: CallOrigin | null;
}

export interface McpResponseSink {
  /**
   * Sends the response. A null `text` means no body. After an event, this closes the stream.
   *
   * @param sessionId id of the session that `initialize` began, sent as a header
   */
  reply(status: number, text: string | null, sessionId?: string): void;
  /**
   * Closes the exchange of a request that its client cancelled: without a response, or with this one if the client
   * would otherwise resume the stream.
   */
  cancelled(text: string): void;
  /** Sends an event. The first one turns the response into an event stream. */
  event(text: string): void;
  open(): void;
  /** Opens the stream of a call's response; called before its first message. */
  openAnswer(): void;
  /** Turns a slow response into a stream, so that proxies see that the request is served. */
  openWhenLate(): void;
  close(): void;
}

export const silentSink: McpResponseSink = {
  reply: () => undefined,
  cancelled: () => undefined,
  event: () => undefined,
  open: () => undefined,
  openAnswer: () => undefined,
  openWhenLate: () => undefined,
  close: () => undefined,
};

export interface McpRequest {
  channel: Channel;
  method: string;
  params: unknown;
  paramsText: string | undefined;
  id: string;
  request: McpRequestContext;
  sink: McpResponseSink;
}

/** The record of a request. Subclasses decide which parts of its content they record. */
export abstract class RequestRecord implements CallObserver {
  protected readonly at = Date.now();
  protected readonly startedAt = performance.now();
  /** Null until the message was parsed, and for a client's response to a server's request. */
  protected rpcMethod: string | null = null;
  protected toolName: string | null = null;
  protected isResponse = false;
  protected failure: Error | null = null;
  protected thrownStatus: number | null = null;

  /**
   * @param origin null for a request of the service itself
   * @param invocationId id of the record; hosted code receives it, so that its console lines refer to it
   */
  constructor(
    readonly origin: CallOrigin | null,
    readonly invocationId = uuidV7(),
  ) {}

  received(method: string | null, params: unknown): void {
    this.rpcMethod = method;
    this.isResponse = method === null;
    const name = method === 'tools/call' ? (params as { name?: unknown } | undefined)?.name : undefined;
    this.toolName = typeof name === 'string' ? name : null;
  }

  failed(error: Error): void {
    this.failure = error;
  }

  /** Records an error that was thrown before the MCP server replied. */
  threw(error: unknown): void {
    this.failure = error as Error;
    this.thrownStatus = statusOf[domainErrorOf(error)?.kind ?? 'internal'];
  }

  protected get elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}
