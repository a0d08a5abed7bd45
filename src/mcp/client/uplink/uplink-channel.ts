import type {
  Channel,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import { isChange } from '../../protocol/list-pages.js';
import { asCallError, UpstreamBusyError, UplinkDisconnectedError, UpstreamError } from '../../protocol/mcp-errors.js';
import { parseMessage, requestText, resultOf } from '../../protocol/messages.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { identityOfInitialize, initializeParams } from '../../protocol/session.js';
import { LegacyListening } from '../legacy-adapter.js';
import { LegacyTasks, offersTasks } from '../legacy-tasks.js';
import { SessionLevel } from '../session-level.js';
import { SingleFlight } from '../single-flight.js';
import { Listeners } from '../listeners.js';
import { MultiplexedCalls } from '../multiplexed-calls.js';
import { MessageBudget } from '../message-budget.js';

/** Duplex pipe of whole messages to a peer, independent of its transport. */
export interface FramePort {
  /** Settles when the peer reads messages; earlier messages may be lost. Never rejects. */
  readonly ready: Promise<void>;
  /** Queues one message. Never throws; without effect on a closed port. */
  send(text: string): void;
  /** Bytes that the peer has not read yet. */
  readonly bufferedBytes: number;
  /**
   * Closes the pipe because of a protocol violation.
   *
   * @param code WebSocket close code (RFC 6455 section 7.4.1): 1007 for invalid JSON, 1008 otherwise
   * @param reason at most 123 bytes of UTF-8
   */
  refuse(code: 1007 | 1008, reason: string): void;
  /** Closes the pipe normally. */
  close(): void;
}

/** Limit of concurrent calls per local server: it runs on a desktop, and each call may hold 16 MB here. */
const IN_FLIGHT_MAX = 256;

/**
 * Limit of bytes unread by the peer before new calls are refused; bounds a tunnel to 20 MB, as a message has up to 16.
 */
export const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Capabilities declared to the local server. All callers share its session, so it is refused what the caller of a call
 * cannot answer.
 */
const DECLARED = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Name of the local server in error texts. */
const host = 'The local server';

/**
 * MCP to a local server over a pipe that the server's bridge opened: one message per frame in both directions, for many
 * callers. The owner of the pipe calls {@link receive} and {@link end}.
 */
export class UplinkChannel implements Channel {
  private readonly calls: MultiplexedCalls;
  private readonly listening = new LegacyListening((timeoutMs) => this.session(timeoutMs));
  private readonly listeners = new Listeners((...args) => this.listening.start(...args));
  private readonly tasks = new LegacyTasks();
  /** Of the client that set a level last and called. */
  private readonly level = new SessionLevel();
  private readonly identity = new SingleFlight(() => this.initialize(), { host });
  private lastId = 0;
  private isEnded = false;
  private readonly budget = new MessageBudget(true);

  /** @param connectTimeoutMs handshake timeout */
  constructor(
    private readonly port: FramePort,
    private readonly connectTimeoutMs: number,
  ) {
    this.calls = new MultiplexedCalls({
      host,
      takeId: () => (this.lastId += 1),
      sendRequest: (text) => port.send(text),
      notify: (text) => port.send(text),
      answer: (text) => this.answer(text),
    });
  }

  /** Calls that the local server has not answered. */
  get inFlight(): number {
    return this.calls.size;
  }

  open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.identity.get(timeoutMs);
  }

  async request(call: McpCall): Promise<McpReply> {
    const timeLeft = deadlineIn(call.timeoutMs);
    const identity = this.identity.value ?? (await this.identity.get(call.timeoutMs, call.cancellation));
    const { level } = call.profile ?? {};
    if (level !== undefined) {
      await this.level.set(level, (set) => {
        const timeoutMs = timeLeft();
        return this.send({ ...set, timeoutMs }, timeoutMs);
      });
    }
    const send = (part: McpCall, timeoutMs: number) => this.send(part, timeoutMs);
    return offersTasks(identity) ? this.tasks.send(call, timeLeft(), send) : send(call, timeLeft());
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, { timeoutMs }: ListenOptions): Promise<Listening> {
    await this.open(timeoutMs);
    if (this.isEnded) throw new UplinkDisconnectedError();
    return this.listeners.add(filter, listener, timeoutMs);
  }

  /** Nothing to release: all callers share the one session of the local server. */
  async release(): Promise<void> {}

  async close(): Promise<void> {
    this.port.close();
  }

  /** Handles one message of the peer. */
  receive(text: string): void {
    if (this.isEnded) return;
    const head = parseMessage(text);
    if (!head) return this.refuse(text);
    const exceeded = this.budget.spend(text.length);
    if (exceeded !== null) return this.port.refuse(1008, exceeded);
    const { method } = head;
    if (typeof method === 'string') {
      if (head.id !== undefined) this.calls.requested(text, method);
      else if (method === 'notifications/progress') this.calls.progressed(head, text);
      else if (isChange(method)) this.listening.onNotification(text, method);
      else this.calls.notified(text, method);
    } else if ('result' in head || 'error' in head) {
      if (this.calls.answered(head, text)) this.budget.renew();
    } else this.port.refuse(1008, 'a frame must hold one JSON-RPC message');
  }

  /** Fails everything in progress after the pipe has closed. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.calls.end(() => new UplinkDisconnectedError(true));
    void this.listeners.close(new UplinkDisconnectedError());
  }

  private refuse(text: string): void {
    try {
      JSON.parse(text);
    } catch {
      return this.port.refuse(1007, 'a frame must be JSON');
    }
    this.port.refuse(1008, 'a frame must hold one JSON-RPC message, not a batch');
  }

  /** Answers the peer. Closes the pipe of a peer that sends requests without reading the answers, to protect memory. */
  private answer(text: string): void {
    if (this.isEnded) return;
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) this.port.refuse(1008, 'answers are not read');
    else this.port.send(text);
  }

  /** Sends `initialize`, once per pipe: the bridge answers from the session with which it started the server. */
  private async initialize(): Promise<UpstreamIdentity> {
    await this.port.ready;
    const timeoutMs = this.connectTimeoutMs;
    const params = initializeParams(DECLARED);
    const reply = await this.send({ method: 'initialize', params, timeoutMs }, timeoutMs);
    if (reply.error) {
      throw new UpstreamError(`The local server refused to open a session: ${reply.error.message.slice(0, 300)}`);
    }
    const identity = identityOfInitialize(resultOf(reply), { host });
    this.port.send(requestText(null, 'notifications/initialized', undefined));
    return identity;
  }

  /** @throws UpstreamBusyError when the request was not sent, UpstreamFailure */
  private async send(call: McpCall, timeoutMs: number): Promise<McpReply> {
    if (this.isEnded) throw new UplinkDisconnectedError();
    if (this.calls.size >= IN_FLIGHT_MAX) {
      const message = `${IN_FLIGHT_MAX} calls run through this uplink already: try again when some of them have ended.`;
      throw new UpstreamBusyError(message);
    }
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) {
      throw new UpstreamBusyError('The local server does not read what it was sent: try again when it has caught up.');
    }
    try {
      return await this.calls.run(call, timeoutMs);
    } catch (error) {
      throw asCallError(error, call);
    }
  }

  /** The session of the local server, for its notifications. */
  private async session(timeoutMs: number) {
    return {
      identity: await this.open(timeoutMs),
      request: (call: McpCall, ms: number) => this.send(call, ms),
      startListening: () => Promise.resolve(!this.isEnded),
      stopListening: () => undefined,
    };
  }
}
