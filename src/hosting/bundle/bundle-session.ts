import { randomUUID } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { Logger } from '@nestjs/common';
import { LineReader } from '../../platform/text/line-reader.js';
import { INVOCATION_HEADER, type RuntimeOutcome, type TraceLine } from '../hosting.types.js';
import type { Launch } from '../sandbox/sandbox.js';
import { CpuSample } from './process-cpu.js';

/** The largest message of a server: as large as the largest answer that is taken from any. */
const MESSAGE_CHARS_MAX = 16 * 1024 * 1024;

/** A console line is cut here. */
const LINE_CHARS_MAX = 8 * 1024;

/** What a line counts besides its text: an empty one is not free. */
const LINE_BYTES = 16;

/** What is told of a server that ended: an error of Node takes about ten lines. */
const WORDS_MAX = 12;
const WORDS_CHARS_MAX = 1_000;

/** What a server that reads nothing may leave waiting for it. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;

/** A server that was told to end has so long; some write their state. */
const GRACE_MS = 1_000;

/** How often the CPU time of a working server is looked at. */
const CPU_LOOK_MS = 250;

/** What a session tells of itself. */
export interface SessionEars {
  /** A line the server wrote to its error stream, and the call it belongs to; empty when that cannot be told. */
  onLine(invocationId: string, line: TraceLine): void;
  /** A call ended otherwise than with an answer. */
  onFailure(invocationId: string, outcome: RuntimeOutcome, message: string): void;
  onEnd(): void;
}

interface Asked {
  invocationId: string;
  progressToken: unknown;
  cpuAtStart: number;
  loggedBytes: number;
}

/**
 * One MCP session of a bundle, which is one child process: messages go to its standard input and come from its standard
 * output, a line each. It ends with the process, and the process ends with it, whoever goes first.
 */
export class BundleSession {
  readonly id = randomUUID();
  lastUsed = Date.now();
  readonly ended: Promise<void>;
  private readonly logger = new Logger('bundles');
  private readonly transport: StreamableHTTPServerTransport;
  private readonly child: ChildProcess;
  private readonly cpu: CpuSample;
  private readonly asked = new Map<RequestId, Asked>();
  private readonly watch: NodeJS.Timeout;
  private readonly lastWords: string[] = [];
  private why: { outcome: RuntimeOutcome; message: string } | null = null;
  private isEnding = false;

  constructor(
    { file, args, options, fds = [] }: Launch,
    private readonly limits: { cpuMs: number; logBytes: number },
    private readonly ears: SessionEars,
  ) {
    // A group of its own, so that what it starts itself ends with it.
    this.child = spawn(file, args, { ...options, detached: true, stdio: ['pipe', 'pipe', 'pipe', ...fds] });
    this.cpu = new CpuSample(this.child.pid);
    this.ended = this.listen();
    this.transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => this.id });
    this.transport.onmessage = (message, extra) => this.toChild(message, extra);
    this.transport.onclose = () => this.end();
    this.transport.onerror = (error) => this.logger.debug({ msg: 'a message to a bundle was refused', err: error });
    this.watch = setInterval(() => this.lookAtCpu(), CPU_LOOK_MS).unref();
  }

  get isBusy(): boolean {
    return this.asked.size > 0;
  }

  /** Answers one request of the session. @param body parsed, for a POST */
  async serve(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void> {
    this.lastUsed = Date.now();
    const id = (body as { id?: RequestId } | undefined)?.id;
    if (id !== undefined) response.once('close', () => this.abandon(id));
    await this.transport.handleRequest(request, response, body);
  }

  /** Whoever asked is gone: a call nobody waits for keeps no session alive. */
  private abandon(requestId: RequestId): void {
    if (!this.asked.delete(requestId)) return;
    const params = { requestId, reason: 'The client left.' };
    this.toChild({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
  }

  /** Ends it in order, by force a second later. Safe to call twice. */
  end(): void {
    if (this.isEnding) return;
    this.isEnding = true;
    this.child.stdin?.end();
    setTimeout(() => this.kill(), GRACE_MS).unref();
  }

  /** Ends it now, with all it started. */
  kill(): void {
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      // Of a process that is gone its group may be left, so it is asked for either way.
      if (exitCode === null && signalCode === null) this.logger.debug({ msg: 'a bundle was gone already', err: error });
    }
  }

  /** @returns a promise of its end */
  private listen(): Promise<void> {
    const { child } = this;
    const said = new LineReader(MESSAGE_CHARS_MAX, 'refused', (line) => this.fromChild(line));
    const logged = new LineReader(LINE_CHARS_MAX, 'cut', (line) => this.logLine(line.replace(/\r$/, '')));
    child.stdin?.on('error', (error) => this.logger.debug({ msg: 'a bundle reads no more', err: error }));
    child.stdout
      ?.on('error', () => this.kill())
      .on('data', (chunk: Buffer) => {
        this.guarded(() => said.push(chunk), `It wrote a message of more than ${MESSAGE_CHARS_MAX} characters.`);
      });
    child.stderr?.on('error', () => this.kill()).on('data', (chunk: Buffer) => logged.push(chunk));
    return new Promise((resolve) => {
      let isOver = false;
      const over = (how: string) => {
        if (isOver) return;
        isOver = true;
        logged.end();
        this.gone(how);
        resolve();
      };
      // What it started itself may hold its pipes open, and then nothing would ever close.
      child.once('exit', () => this.kill());
      child.on('error', (error) => over(`It could not be started: ${error.message}.`));
      child.once('close', (code, signal) => over(`Its process ended with ${signal ?? `exit code ${code}`}.`));
    });
  }

  private guarded(work: () => void, message: string): void {
    try {
      work();
    } catch (error) {
      this.logger.debug({ msg: 'a bundle was ended', err: error });
      this.why ??= { outcome: 'exceededResponse', message };
      this.kill();
    }
  }

  private toChild(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if ('method' in message && 'id' in message) {
      const given = extra?.requestInfo?.headers[INVOCATION_HEADER];
      const meta = (message.params as { _meta?: { progressToken?: unknown } } | undefined)?._meta;
      this.asked.set(message.id, {
        invocationId: typeof given === 'string' ? given : '',
        progressToken: meta?.progressToken,
        cpuAtStart: this.cpu.usedMs() ?? 0,
        loggedBytes: 0,
      });
    }
    // Servers need not answer what was cancelled, and many do not.
    if ('method' in message && message.method === 'notifications/cancelled') {
      this.asked.delete((message.params as { requestId: RequestId }).requestId);
    }
    const { stdin } = this.child;
    if (!stdin?.writable) return;
    stdin.write(`${JSON.stringify(message)}\n`);
    if (stdin.writableLength > WAITING_BYTES_MAX) this.kill();
  }

  private fromChild(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = JSON.parse(line) as JSONRPCMessage;
    } catch {
      // Servers that print to their standard output are common; the author should see it, the client need not suffer.
      return this.logLine(line.slice(0, LINE_CHARS_MAX));
    }
    const isAnswer = typeof message === 'object' && message !== null && !('method' in message) && 'id' in message;
    if (isAnswer) this.asked.delete((message as { id: RequestId }).id);
    const relatedRequestId = isAnswer ? undefined : this.callOf(message);
    this.transport.send(message, { relatedRequestId }).catch((error: unknown) => {
      this.logger.debug({ msg: 'a message of a bundle found nobody', err: error });
    });
  }

  /** The call a notification or question belongs to: by its progress token, else the newest; none of it is said on stdio. */
  private callOf(message: JSONRPCMessage): RequestId | undefined {
    if (typeof message !== 'object' || message === null || !('method' in message)) return undefined;
    const { method, params } = message as { method: string; params?: { progressToken?: unknown } };
    if (method.endsWith('/list_changed') || method === 'notifications/resources/updated') return undefined;
    const calls = [...this.asked];
    const token = params?.progressToken;
    const found = token === undefined ? calls.at(-1) : calls.find(([, { progressToken }]) => progressToken === token);
    return found?.[0];
  }

  private logLine(message: string): void {
    this.lastWords.push(message);
    if (this.lastWords.length > WORDS_MAX) this.lastWords.shift();
    const line: TraceLine = { at: Date.now(), level: 'log', message: message.slice(0, LINE_CHARS_MAX) };
    const [only, another] = this.asked.values();
    if (!only || another) return this.ears.onLine('', line);
    const { logBytes } = this.limits;
    if (only.loggedBytes > logBytes) return;
    only.loggedBytes += Buffer.byteLength(line.message) + LINE_BYTES;
    const cut = `Lines were left out: one request may log ${Math.floor(logBytes / 1_024)} KB.`;
    this.ears.onLine(only.invocationId, only.loggedBytes > logBytes ? { ...line, level: 'warn', message: cut } : line);
  }

  private lookAtCpu(): void {
    if (this.asked.size === 0) return;
    const used = this.cpu.usedMs();
    const over =
      used !== null && [...this.asked.values()].some(({ cpuAtStart }) => used - cpuAtStart > this.limits.cpuMs);
    if (!over) return;
    this.why ??= {
      outcome: 'exceededCpu',
      message: `The call used more than ${this.limits.cpuMs} ms of CPU time and was ended, with its session.`,
    };
    this.kill();
  }

  private words(): string {
    const said = this.lastWords.join(' ').replace(/\s+/g, ' ').slice(0, WORDS_CHARS_MAX);
    return said === '' ? '' : ` Its last words: ${said}`;
  }

  /** Whoever still waits hears why. */
  private gone(how: string): void {
    clearInterval(this.watch);
    this.isEnding = true;
    const { outcome, message } = this.why ?? {
      outcome: 'exception' as const,
      message: `The server ended before it answered. ${how}${this.words()}`,
    };
    const waiting = [...this.asked];
    this.asked.clear();
    const told = waiting.map(async ([id, { invocationId }]) => {
      this.ears.onFailure(invocationId, outcome, message);
      await this.transport.send({ jsonrpc: '2.0', id, error: { code: -32603, message } });
    });
    void Promise.allSettled(told)
      .then(() => this.transport.close())
      .catch((error: unknown) => this.logger.debug({ msg: 'the session of a bundle was closed already', err: error }));
    this.ears.onEnd();
  }
}
