import type { Channel, Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../../../mcp/channel.js';
import { CallerLeftError, UplinkDisconnectedError } from '../../../mcp/mcp-errors.js';
import { parseMessage, replyTo } from '../../../mcp/messages.js';
import type { ServerHello } from '../../../mcp/protocol.js';
import type { InternalCalls } from './internal-calls.js';
import { fromWire, type InternalAsk, type InternalLine } from './internal-frames.js';
import type { TunnelName } from './uplink-leases.js';

/** The process that was asked does not hold the tunnel any more; nothing was sent to the local server. */
export class TunnelMovedError extends Error {}

/** Looks at one line: what it came to, or undefined while more is to come. */
type Reader<T> = (line: InternalLine) => T | undefined;

/**
 * A tunnel in another process. Nothing is asked back in the middle of a call: a local server that wants to hears there that
 * nobody answers.
 */
export class RemoteUplinkChannel implements Channel {
  private readonly path: string;

  constructor(
    private readonly calls: InternalCalls,
    private readonly url: string,
    { connectionId, tunnel }: TunnelName,
  ) {
    this.path = `/internal/uplink/${connectionId}/${tunnel}`;
  }

  async open(timeoutMs: number): Promise<ServerHello> {
    const { value } = await this.ask({ ask: 'open', timeoutMs }, '', (line) =>
      line.line === 'hello' ? line.hello : undefined,
    );
    return value;
  }

  async request({ method, params, timeoutMs, cancellation, onNotification }: McpCall): Promise<McpReply> {
    if (cancellation?.isCancelled) throw new CallerLeftError();
    let leave = (): void => undefined;
    const onLeft = () => leave();
    cancellation?.notify(onLeft);
    const wantsNotifications = onNotification !== undefined;
    try {
      const { value } = await this.ask(
        { ask: 'request', method, timeoutMs, hasParams: params !== undefined, wantsNotifications },
        params ?? '',
        (line) => {
          if (line.line === 'notification') onNotification?.(line.text, line.method);
          return line.line === 'reply' ? toReply(line.text) : undefined;
        },
        (how) => (leave = how),
      );
      return value;
    } catch (error) {
      if (cancellation?.isCancelled) throw new CallerLeftError();
      const isLost =
        error instanceof UplinkDisconnectedError && error.message === new UplinkDisconnectedError(true).message;
      throw isLost && method === 'tools/call' ? error.ofCall() : error;
    } finally {
      cancellation?.forget(onLeft);
    }
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    let isOver = false;
    const end = (error: Error) => {
      if (!isOver) listener.onEnd(error);
      isOver = true;
    };
    const { value: honoured, leave } = await this.ask<ListenFilter>(
      { ask: 'listen', filter, timeoutMs },
      '',
      (line) => {
        if (line.line === 'notification' && !isOver) listener.onNotification(line.text, line.method);
        return line.line === 'listening' ? line.honoured : undefined;
      },
      undefined,
      end,
    );
    return {
      honoured,
      close: async () => {
        isOver = true;
        leave();
      },
    };
  }

  /** All callers share the one session of the local server. */
  async release(): Promise<void> {}

  /** The tunnel belongs to the process that holds it. */
  async close(): Promise<void> {}

  /**
   * @param whenLeft is handed what breaks the request off
   * @param onEnd told when the answer ends after its value, as that of a listener does
   * @throws TunnelMovedError, UpstreamFailure
   */
  private async ask<T>(
    what: InternalAsk,
    params: string,
    read: Reader<T>,
    whenLeft: (leave: () => void) => void = () => undefined,
    onEnd: (error: Error) => void = () => undefined,
  ): Promise<{ value: T; leave: () => void }> {
    let leave = (): void => undefined;
    const stream = await this.calls
      .post(this.url, this.path, `${JSON.stringify(what)}\n${params}`, (how) => whenLeft((leave = how)))
      .catch((error: unknown) => {
        throw asFailure(error);
      });
    if (stream.status === 404) {
      stream.read(ignore, ignore);
      throw new TunnelMovedError();
    }
    return new Promise((resolve, reject) => {
      const ended = () => {
        reject(new UplinkDisconnectedError(true));
        onEnd(new UplinkDisconnectedError());
      };
      stream.read((text) => {
        const line = JSON.parse(text) as InternalLine;
        if (line.line === 'failure') return reject(fromWire(line.failure));
        const value = read(line);
        if (value !== undefined) resolve({ value, leave });
      }, ended);
    });
  }
}

function ignore(): void {}

/** A process that nobody reaches is dead or about to be: its lease tells, a little later. */
function asFailure(error: unknown): Error {
  const { code = '' } = error as { code?: string };
  const wasSent = !/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code);
  return new UplinkDisconnectedError(wasSent);
}

/** The spans are found anew here: they are not worth sending. */
function toReply(text: string): McpReply {
  const head = parseMessage(text);
  const reply = head && replyTo(head.id as number, text, head, 'legacy');
  if (!reply) throw new UplinkDisconnectedError(true);
  return reply;
}
