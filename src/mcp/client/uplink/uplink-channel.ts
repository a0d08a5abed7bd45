import { Logger } from '@nestjs/common';
import type {
  Channel,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../protocol/channel.js';
import {
  PROGRAM_START_MS,
  UpstreamBusyError,
  UplinkDisconnectedError,
  unreadable,
  UpstreamError,
} from '../../protocol/mcp-errors.js';
import { isMessage } from '../../../platform/text/json-rpc.js';
import { idOfOversized, messagesIn, parseMessage } from '../../protocol/messages.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { LegacyAdapter } from '../legacy-adapter.js';
import { MessageBudget } from '../message-budget.js';
import { PipeSession } from '../pipe-session.js';
import type { SessionHandlers } from '../session-slots.js';

/** Duplex pipe of whole messages to a peer, independent of its transport. */
export interface FramePort {
  /** Resolves when the other side reads messages; earlier messages can be lost. The promise never rejects. */
  readonly ready: Promise<void>;
  /** This method never throws; without effect on a closed port. */
  send(text: string): void;
  /** Bytes that the peer has not read yet. */
  readonly bufferedBytes: number;
  /** Closes the pipe because of a limit that the peer exceeds. @param reason at most 123 bytes of UTF-8 */
  refuse(reason: string): void;
  close(): void;
}

/** Maximum number of running calls: a local server runs on a desktop, and each call can hold 16 MB here. */
const IN_FLIGHT_MAX = 256;

/**
 * Limit of bytes unread by the peer before new calls are refused; bounds a tunnel to 20 MB, as a message has up to 16.
 */
export const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Capabilities declared to the local server. All callers share its session, so its requests are rejected if the caller
 * of a call cannot answer them.
 */
const DECLARED = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const host = 'The local server';

export class UplinkChannel implements Channel {
  private readonly logger = new Logger('uplink');
  private readonly session: PipeSession;
  private readonly adapter: LegacyAdapter;
  private readonly budget = new MessageBudget(true);
  private lastId = 0;
  private fault: string | null = null;

  constructor(private readonly port: FramePort) {
    const handlers: Partial<SessionHandlers> = {};
    const pipe = {
      host,
      takeId: () => (this.lastId += 1),
      send: async (text: string) => this.send(text),
      notify: (text: string) => port.send(text),
      sendResponse: (text: string) => this.sendReply(text),
      toRejection: (message: string) =>
        new UpstreamError(`The local server refused to open a session: ${message.slice(0, 300)}`),
      toClosedError: () => new UplinkDisconnectedError(true, this.fault),
      close: () => undefined,
    };
    const session = new PipeSession(pipe, DECLARED, handlers);
    this.session = session;
    const open = async (_: unknown, owner: SessionHandlers) => {
      // Requests that no running call can answer are rejected: they might concern any caller.
      Object.assign(handlers, owner, { onRequest: undefined });
      await port.ready;
      await session.begin(PROGRAM_START_MS);
      return session;
    };
    this.adapter = new LegacyAdapter(open, { url: { host, isProgram: true }, hasOneSession: true });
  }

  get inFlight(): number {
    return this.session.size;
  }

  open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.adapter.open(timeoutMs);
  }

  request(call: McpCall): Promise<McpReply> {
    return this.adapter.request(call, call.timeoutMs);
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, { timeoutMs }: ListenOptions): Promise<Listening> {
    await this.open(timeoutMs);
    return this.adapter.listen(filter, listener, { timeoutMs });
  }

  /** Does nothing: all callers share the one session of the local server. */
  async release(): Promise<void> {}

  async close(): Promise<void> {
    this.port.close();
  }

  /** Handles a message or a batch; anything else, such as log output, is only logged. */
  receive(frame: string): void {
    for (const text of messagesIn(frame)) {
      if (this.session.loss) return;
      const head = parseMessage(text);
      if (!head || !isMessage({ ...head })) {
        this.logger.debug({ msg: 'a local server sent something that is not a message', text: text.slice(0, 200) });
        continue;
      }
      const exceeded = this.budget.spend(text.length);
      if (exceeded !== null) return this.port.refuse(exceeded);
      if (this.session.receive(head, text)) this.budget.renew();
    }
  }

  /** @param exceeded the limit, as a noun phrase */
  rejectOversized(text: string, exceeded: string): void {
    this.logger.debug({ msg: `a local server sent a message with ${exceeded}`, text: text.slice(0, 200) });
    const id = idOfOversized(text);
    if (id !== undefined) this.session.failCall(id, unreadable(`${host} sent a response with ${exceeded}.`));
  }

  /** Call it after the pipe has closed. @param fault its reason, as a message */
  handleClose(fault: string | null = null): void {
    this.fault = fault;
    this.session.fail(new UplinkDisconnectedError());
    void this.adapter.plain.listeners.close(new UplinkDisconnectedError());
  }

  /** Closes the pipe of a peer that sends requests without reading the responses, to protect memory. */
  private sendReply(text: string): void {
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) this.port.refuse('answers are not read');
    else this.port.send(text);
  }

  /** @throws UpstreamBusyError when the request was not sent */
  private send(text: string): void {
    if (this.inFlight > IN_FLIGHT_MAX) {
      const message = `${IN_FLIGHT_MAX} calls run through this uplink already: try again when some of them have ended.`;
      throw new UpstreamBusyError(message);
    }
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) {
      throw new UpstreamBusyError('The local server does not read what it was sent: try again when it has caught up.');
    }
    this.port.send(text);
  }
}
