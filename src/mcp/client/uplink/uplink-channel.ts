import { Logger } from '@nestjs/common';
import type {
  Channel,
  ClientAnswer,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../protocol/channel.js';
import { deadlineIn, withinDeadline } from '../../protocol/deadline.js';
import { members, slice } from '../../protocol/json-text.js';
import { UplinkDisconnectedError, UpstreamError, UpstreamFailure } from '../../protocol/mcp-errors.js';
import { answerText, parseMessage, requestText, resultOf, type RpcHead } from '../../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../protocol/protocol.js';
import { identityOfInitialize, initializeParams } from '../../protocol/session.js';
import { LegacyTasks, offersTasks } from '../legacy-tasks.js';
import { MessageBudget } from '../message-budget.js';
import { UNREAD_BYTES_MAX, UplinkCalls, type FramePort } from './uplink-calls.js';
import { UplinkListeners } from './uplink-listeners.js';

/** Limit of concurrent requests of a local server; each waits for a person. */
const QUESTIONS_MAX = 64;

/** Name of the local server in error texts. */
const LOCAL_SERVER = { host: 'The local server' };

/**
 * MCP to a local server over a pipe that the server's bridge opened: one message per frame in both directions, for many
 * callers. The owner of the pipe calls {@link receive} and {@link end}.
 */
export class UplinkChannel implements Channel {
  private readonly logger = new Logger('uplink');
  private readonly calls: UplinkCalls;
  private readonly listeners: UplinkListeners;
  private readonly tasks = new LegacyTasks();
  private identity: UpstreamIdentity | null = null;
  private opening: Promise<UpstreamIdentity> | null = null;
  private isEnded = false;
  private questions = 0;
  private readonly budget = new MessageBudget(true);

  /** @param connectTimeoutMs handshake timeout */
  constructor(
    private readonly port: FramePort,
    private readonly connectTimeoutMs: number,
  ) {
    this.calls = new UplinkCalls(port);
    this.listeners = new UplinkListeners((method, uri) => this.subscribe(method, uri));
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.identity ?? (await this.waitForHello(timeoutMs));
  }

  async request(call: McpCall): Promise<McpReply> {
    const left = deadlineIn(call.timeoutMs);
    const identity = this.identity ?? (await this.waitForHello(call.timeoutMs, call));
    const send = (one: McpCall, timeoutMs: number) => this.ask({ ...one, timeoutMs });
    return offersTasks(identity) ? this.tasks.send(call, left(), send) : send(call, left());
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    const identity = await this.open(timeoutMs);
    if (this.isEnded) throw new UplinkDisconnectedError();
    return this.listeners.add(filter, listener, identity);
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
    if (typeof head.method === 'string') this.onMessage(head, head.method, text);
    else if ('result' in head || 'error' in head) {
      if (this.calls.answered(head, text)) this.budget.renew();
    } else this.port.refuse(1008, 'a frame must hold one JSON-RPC message');
  }

  /** Fails everything in progress after the pipe has closed. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.calls.end(() => new UplinkDisconnectedError(true));
    this.listeners.end(new UplinkDisconnectedError());
  }

  private refuse(text: string): void {
    try {
      JSON.parse(text);
    } catch {
      return this.port.refuse(1007, 'a frame must be JSON');
    }
    this.port.refuse(1008, 'a frame must hold one JSON-RPC message, not a batch');
  }

  private onMessage(head: RpcHead, method: string, text: string): void {
    if (head.id !== undefined) return this.onQuestion(head, method, text);
    if (method === 'notifications/progress') this.calls.progressed(head, text);
    else if (!this.listeners.told(head, text, method)) this.calls.said(text, method);
  }

  private onQuestion({ params }: RpcHead, method: string, text: string): void {
    const parts = members(text);
    const id = slice(text, parts.get('id') ?? [0, 0]);
    if (method === 'ping') return this.reply(id, { result: '{}' });
    const asked = this.calls.askable;
    if (!asked) {
      const message = `Nobody is there who could answer ${method}, or it is not clear who`;
      return this.reply(id, { error: { code: rpcCode.methodNotFound, message } });
    }
    if (this.questions >= QUESTIONS_MAX) {
      const message = `More than ${QUESTIONS_MAX} questions are open`;
      return this.reply(id, { error: { code: rpcCode.internalError, message } });
    }
    const span = parts.get('params');
    this.questions += 1;
    asked
      .ask(method, params === undefined || !span ? undefined : slice(text, span))
      .then((answer) => {
        this.questions -= 1;
        this.reply(id, answer);
      })
      .catch((error: unknown) => this.logger.error({ msg: 'an answer could not be sent', err: error }));
  }

  /** Answers the peer. Closes the pipe of a peer that sends requests without reading the answers, to protect memory. */
  private reply(id: string, answer: ClientAnswer): void {
    if (this.isEnded) return;
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) return this.port.refuse(1008, 'answers are not read');
    this.port.send(answerText(id, answer));
  }

  private waitForHello(
    timeoutMs: number,
    { cancellation }: Pick<McpCall, 'cancellation'> = {},
  ): Promise<UpstreamIdentity> {
    this.opening ??= this.initialize().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return withinDeadline(this.opening, timeoutMs, 'The local server did not introduce itself in time.', cancellation);
  }

  /** Sends `initialize`, once per pipe: the bridge answers from the session with which it started the server. */
  private async initialize(): Promise<UpstreamIdentity> {
    await this.port.ready;
    const timeoutMs = this.connectTimeoutMs;
    const reply = await this.ask({ method: 'initialize', params: initializeParams(), timeoutMs });
    if (reply.error) {
      throw new UpstreamError(`The local server refused to open a session: ${reply.error.message.slice(0, 300)}`);
    }
    const identity = identityOfInitialize(resultOf(reply), LOCAL_SERVER);
    this.port.send(requestText(null, 'notifications/initialized', undefined));
    return (this.identity = identity);
  }

  private async ask(call: McpCall): Promise<McpReply> {
    if (this.isEnded) throw new UplinkDisconnectedError();
    try {
      return await this.calls.run(call);
    } catch (error) {
      throw error instanceof UpstreamFailure && call.method === 'tools/call' ? error.ofCall() : error;
    }
  }

  private async subscribe(method: string, uri: string): Promise<boolean> {
    try {
      const { error } = await this.ask({ method, params: JSON.stringify({ uri }), timeoutMs: this.connectTimeoutMs });
      return error === null;
    } catch (error) {
      this.logger.debug({ msg: `${method} failed`, err: error });
      return false;
    }
  }
}
