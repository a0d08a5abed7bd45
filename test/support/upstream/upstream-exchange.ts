import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/** One JSON-RPC message as it came: nothing is promised about its fields. */
export type RpcMessage = Record<string, unknown>;

/** A JSON-RPC error that a request handler throws. `status` is the HTTP status of its answer. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
    readonly status = 200,
    /** Answers with `id: null` instead of the request's id, as servers do that refuse before they dispatch. */
    readonly withoutId = false,
  ) {
    super(message);
  }
}

/** A result given as JSON text, which goes out byte for byte. */
export class RawJson {
  constructor(readonly text: string) {}
}

/** Thrown by a tool whose answer breaks off half way. */
export class CutOff extends Error {}

/** The answering side of one POSTed JSON-RPC request: one JSON object, or an event stream once `open` or `send` was called. */
export class Exchange {
  /** Fires when the exchange is over: answered, or left by the client, or cut by us. */
  readonly signal: AbortSignal;
  /** We broke the connection off ourselves: not the client's doing. */
  isCutByUs = false;
  private isStream = false;

  constructor(
    readonly req: IncomingMessage,
    private readonly res: ServerResponse,
  ) {
    const gone = new AbortController();
    this.signal = gone.signal;
    res.once('close', () => gone.abort());
  }

  /** Sends the headers of an event stream now. Later calls do nothing. */
  open(headers: OutgoingHttpHeaders = {}): void {
    if (this.isStream) return;
    this.isStream = true;
    this.res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers });
    this.res.flushHeaders();
  }

  /** Sends one message (a notification, a request of the server) ahead of the answer. Opens the event stream. */
  send(message: object): void {
    this.open();
    this.res.write(toEvent(JSON.stringify({ jsonrpc: '2.0', ...message })));
  }

  /** Sends the answer and ends. On an open stream the status and headers have gone already. */
  answer(status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
    if (this.isStream) this.res.end(toEvent(json));
    else this.res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(json);
  }

  /** Sends the first half of an answer, then destroys the socket. */
  cut(json: string): void {
    this.isCutByUs = true;
    const whole = this.isStream ? toEvent(json) : json;
    if (!this.isStream) {
      this.res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(whole) });
    }
    this.res.write(whole.slice(0, whole.length / 2), () => this.res.destroy());
  }

  /** Resolves after `ms`. Rejects as soon as the exchange is over, so that no timer outlives it. */
  async delay(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.signal });
  }
}

/** The JSON text of an answer. `id` and `result` are put in as they are, so a raw result keeps its bytes. */
export function toAnswer(id: unknown, outcome: unknown): string {
  if (outcome instanceof RpcError) {
    const { code, message, data } = outcome;
    return JSON.stringify({
      jsonrpc: '2.0',
      id: outcome.withoutId ? null : (id ?? null),
      error: { code, message, data },
    });
  }
  const result = outcome instanceof RawJson ? outcome.text : JSON.stringify(outcome);
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

function toEvent(json: string): string {
  const data = json.split('\n').map((line) => `data: ${line}\n`);
  return `event: message\n${data.join('')}\n`;
}
