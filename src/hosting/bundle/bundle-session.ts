/**
 * One MCP session of a bundle in one child process, which speaks MCP over stdio. A session lives as long as its
 * process.
 *
 * Messages without a request id go to the call of their progress token, else to the newest. Lines on standard error,
 * and lines of standard output that are not JSON-RPC, are log lines; they belong to a call only while one runs. A
 * caller that disconnects cancels its call.
 *
 * The session is closed when a call exceeds its CPU time, its processes together their memory or number, or a message
 * 16 MB; then all its calls fail with the limit or the exit code (-32603). The last output of the process is for its
 * owner: in the log, and in the error of a scan. Closing the session closes the input; the process group is killed a
 * second later.
 */
import { randomUUID } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import { LineReader } from '../../platform/text/line-reader.js';
import {
  cutLine,
  INVOCATION_HEADER,
  LINE_BYTES,
  MEMORY_BASE_MB,
  SCAN_HEADER,
  type ProgramLimits,
  type RuntimeOutcome,
  type TraceLine,
} from '../hosting.types.js';
import type { ProgramLog } from '../engine.js';
import type { Launch } from '../sandbox/sandbox.js';
import { PROCESSES_MAX, SessionUsage } from './session-usage.js';
import { isObject } from '../../platform/text/json.js';
import { exactBytes, exactJsonIn, exactText } from '../../platform/text/exact-json.js';
import { isMessage } from '../../platform/text/json-rpc.js';

export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

const LINE_CHARS_MAX = 8 * 1024;

/** Length limit of a line that is read, so that a secret across the limit of a console line is recognized. */
const READ_CHARS_MAX = 3 * LINE_CHARS_MAX;

/** Length limit of the last output in an error: an error of Node takes about ten lines. */
const WORDS_CHARS_MAX = 1_000;

/** Time to exit after the end of input; some servers save state. */
const GRACE_MS = 1_000;

const LOOK_MS = 250;

/** Interval for an idle session, whose own timers might still run. */
const IDLE_LOOK_MS = 5_000;

export type SessionLimits = Pick<ProgramLimits, 'cpuMs' | 'memoryMb' | 'logBytes'>;

export interface SessionHandlers {
  /** Receives a line of standard error with the invocation that it belongs to; an empty id if unknown. */
  onLine(invocationId: string, line: TraceLine): void;
  /** Called when a call finished without a response. */
  onFailure(invocationId: string, outcome: RuntimeOutcome, message: string): void;
  onEnd(): void;
  redact: (text: string) => string;
  log: ProgramLog;
}

interface PendingCall {
  invocationId: string;
  isScan: boolean;
  progressToken: unknown;
  cpuAtStart: number;
  loggedBytes: number;
}

export class BundleSession {
  readonly id = randomUUID();
  lastUsed = Date.now();
  readonly ended: Promise<void>;
  private readonly transport: StreamableHTTPServerTransport;
  private readonly child: ChildProcess;
  private readonly usage: SessionUsage;
  private lookedAt = 0;
  private readonly pending = new Map<RequestId, PendingCall>();
  private readonly watch: Repeat;
  private lastWords = '';
  private cause: { outcome: RuntimeOutcome; message: string } | null = null;
  private isEnding = false;

  constructor(
    { file, args, options, fds = [] }: Launch,
    private readonly limits: SessionLimits,
    private readonly handlers: SessionHandlers,
  ) {
    // The session has its own process group, so that its child processes are killed as well.
    this.child = spawn(file, args, { ...options, detached: true, stdio: ['pipe', 'pipe', 'pipe', ...fds] });
    this.usage = new SessionUsage(this.child.pid);
    this.ended = this.listen();
    this.transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => this.id });
    this.transport.onmessage = (message, extra) => this.toChild(message, extra);
    this.transport.onclose = () => this.stop();
    this.transport.onerror = (error) =>
      this.handlers.log('debug', { msg: 'a message to a bundle was refused', err: error });
    this.watch = repeat(LOOK_MS, () => this.checkUsage());
  }

  get isBusy(): boolean {
    return this.pending.size > 0;
  }

  /** @param body parsed body of a POST */
  async serve(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void> {
    this.lastUsed = Date.now();
    const id = (body as { id?: RequestId } | undefined)?.id;
    if (id !== undefined) {
      // Without its call, which the caller has left, the session can become idle.
      response.once('close', () => {
        if (!this.pending.delete(id)) return;
        const params = { requestId: id, reason: 'The client left.' };
        this.toChild({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
      });
    }
    // The transport writes what it has parsed.
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    response.write = (chunk: unknown, ...more: unknown[]) => write(exactBytes(chunk), ...more);
    await this.transport.handleRequest(request, response, body);
  }

  /** Kills the process a second later. Idempotent. */
  stop(): void {
    if (this.isEnding) return;
    this.isEnding = true;
    this.child.stdin?.end();
    setTimeout(() => this.kill(), GRACE_MS).unref();
  }

  kill(): void {
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      // Processes of the group may outlive their leader, so the signal is always sent.
      if (exitCode === null && signalCode === null)
        this.handlers.log('debug', { msg: 'a bundle had exited already', err: error });
    }
  }

  /** @returns a promise that resolves on exit */
  private listen(): Promise<void> {
    const { child } = this;
    const stdout = new LineReader(MESSAGE_BYTES_MAX, 'refused', (line) => this.fromChild(line));
    const stderr = new LineReader(READ_CHARS_MAX, 'cut', (line) => this.logLine(line.replace(/\r$/, '')));
    child.stdin?.on('error', (error) =>
      this.handlers.log('debug', { msg: 'the input of a bundle is closed', err: error }),
    );
    child.stdout
      ?.on('error', () => this.kill())
      .on('data', (chunk: Buffer) => {
        try {
          stdout.push(chunk);
        } catch (error) {
          this.handlers.log('debug', { msg: 'a bundle was stopped', err: error });
          this.killFor('exceededResponse', `It wrote a message of more than ${MESSAGE_BYTES_MAX} characters.`);
        }
      });
    child.stderr?.on('error', () => this.kill()).on('data', (chunk: Buffer) => stderr.push(chunk));
    return new Promise((resolve) => {
      let isOver = false;
      const finish = (how: string) => {
        if (isOver) return;
        isOver = true;
        stderr.finish();
        this.onExit(how);
        resolve();
      };
      // Child processes may hold the pipes open, which would then never close.
      child.once('exit', () => this.kill());
      child.on('error', (error) => finish(`It could not be started: ${error.message}.`));
      child.once('close', (code, signal) => finish(`Its process ended with ${signal ?? `exit code ${code}`}.`));
    });
  }

  private killFor(outcome: RuntimeOutcome, message: string): void {
    this.cause ??= { outcome, message };
    this.kill();
  }

  private toChild(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if ('method' in message && 'id' in message) {
      const { [INVOCATION_HEADER]: invocation, [SCAN_HEADER]: scan } = extra?.requestInfo?.headers ?? {};
      const meta = (message.params as { _meta?: { progressToken?: unknown } } | undefined)?._meta;
      this.pending.set(message.id, {
        invocationId: typeof invocation === 'string' ? invocation : '',
        isScan: scan !== undefined,
        progressToken: meta?.progressToken,
        cpuAtStart: this.usage.readUsage()?.cpuMs ?? 0,
        loggedBytes: 0,
      });
    }
    // Servers need not respond to cancelled requests, and many do not.
    if ('method' in message && message.method === 'notifications/cancelled') {
      this.pending.delete((message.params as { requestId: RequestId }).requestId);
    }
    const { stdin } = this.child;
    if (!stdin?.writable) return;
    stdin.write(`${exactText(JSON.stringify(message))}\n`);
    // Two messages may wait for the server to read.
    if (stdin.writableLength > 2 * MESSAGE_BYTES_MAX) this.kill();
  }

  private fromChild(line: string): void {
    const value = exactJsonIn(line);
    // Clients of 2025-03-26 send batches.
    const messages = (Array.isArray(value) && value.length > 0 ? value : [value]) as JSONRPCMessage[];
    // The rest is logged because servers often print to standard output; the client must not receive it.
    if (!messages.every((message) => isObject(message) && isMessage(message)))
      return this.logLine(line.slice(0, READ_CHARS_MAX));
    for (const message of messages) this.forward({ ...message, jsonrpc: '2.0' });
  }

  private forward(message: JSONRPCMessage): void {
    const isAnswer = !('method' in message) && 'id' in message;
    if (isAnswer) this.pending.delete((message as { id: RequestId }).id);
    const relatedRequestId = isAnswer ? undefined : this.callOf(message);
    this.transport.send(message, { relatedRequestId }).catch((error: unknown) => {
      this.handlers.log('debug', { msg: 'a message of a bundle had no receiver', err: error });
    });
  }

  /** Uses the progress token, otherwise the newest call, since stdio has no other link. */
  private callOf(message: JSONRPCMessage): RequestId | undefined {
    if (!('method' in message)) return undefined;
    const { method, params } = message as { method: string; params?: { progressToken?: unknown } };
    if (method.endsWith('/list_changed') || method === 'notifications/resources/updated') return undefined;
    const calls = [...this.pending];
    const token = params?.progressToken;
    const call = token === undefined ? calls.at(-1) : calls.find(([, { progressToken }]) => progressToken === token);
    return call?.[0];
  }

  private logLine(text: string): void {
    const message = this.handlers.redact(text);
    this.lastWords = `${this.lastWords} ${message}`.slice(-WORDS_CHARS_MAX);
    const line: TraceLine = { at: Date.now(), level: 'log', message: message.slice(0, LINE_CHARS_MAX) };
    const [only, another] = this.pending.values();
    if (!only || another) return this.handlers.onLine('', line);
    const { logBytes } = this.limits;
    if (only.loggedBytes > logBytes) return;
    only.loggedBytes += Buffer.byteLength(line.message) + LINE_BYTES;
    const isOver = only.loggedBytes > logBytes;
    this.handlers.onLine(only.invocationId, isOver ? { ...line, level: 'warn', message: cutLine(logBytes) } : line);
  }

  private checkUsage(): void {
    const now = performance.now();
    if (!this.isBusy && now - this.lookedAt < IDLE_LOOK_MS) return;
    this.lookedAt = now;
    const usage = this.usage.readUsage();
    if (usage === null) return;
    const { cpuMs, memoryMb } = this.limits;
    if ([...this.pending.values()].some(({ cpuAtStart }) => usage.cpuMs - cpuAtStart > cpuMs)) {
      this.killFor('exceededCpu', `The call used more than ${cpuMs} ms of CPU time and was stopped, with its session.`);
    } else if (usage.memoryMb > memoryMb + MEMORY_BASE_MB) {
      const message = `The processes of the session exceeded their limit of ${memoryMb} MB of memory and were killed.`;
      this.killFor('exceededMemory', message);
    } else if (usage.processes > PROCESSES_MAX) {
      const message = `The session had more than ${PROCESSES_MAX} processes and was stopped: start fewer at a time.`;
      this.killFor('exceededMemory', message);
    }
  }

  private onExit(how: string): void {
    this.watch.stop();
    this.isEnding = true;
    const words = this.lastWords.replace(/\s+/g, ' ').trim();
    const { outcome, message } = this.cause ?? {
      outcome: 'exception' as const,
      message: `The server ended before it answered. ${how}`,
    };
    const forOwner = this.cause || words === '' ? message : `${message} Its last words: ${words}`;
    const waiting = [...this.pending];
    this.pending.clear();
    const answers = waiting.map(async ([id, { invocationId, isScan }]) => {
      this.handlers.onFailure(invocationId, outcome, forOwner);
      const error = { code: -32603, message: isScan ? forOwner : message };
      await this.transport.send({ jsonrpc: '2.0', id, error });
    });
    void Promise.allSettled(answers)
      .then(() => this.transport.close())
      .catch((error: unknown) =>
        this.handlers.log('debug', { msg: 'the session of a bundle was closed already', err: error }),
      );
    this.handlers.onEnd();
  }
}
