import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { HeldFiles, Launch } from '../sandbox/sandbox.js';
import { LineReader } from '../../platform/text/line-reader.js';
import type { TraceLine } from '../hosting.types.js';
import { FILES } from './workerd-config.js';
import { jsonIn } from '../../platform/text/json-bounds.js';

const LINE_CHARS_MAX = 131_072;

const LAST_WORDS_MAX = 20;

const WORDS_CHARS_MAX = 4_096;

type OutputLine = { by: 'code'; line: TraceLine } | { by: 'workerd'; message: string };

const OUR_PLACES = new RegExp(
  `\\n *(?:at|imported from) (?:[^\\n]*\\()?"?(?:${[FILES.main, FILES.prelude, FILES.wrapper].join('|').replaceAll('.', '\\.')})[^\\n]*`,
  'g',
);

const LEVELS: readonly string[] = ['debug', 'info', 'log', 'warn', 'error'];

interface ProcessEnd {
  by: number | NodeJS.Signals;
  hasRunOutOfMemory: boolean;
  /** Last output for the author; empty without any. */
  lastWords: string[];
  detail: string[];
}

/** Reads its pipes to the end and catches all their errors. */
export class WorkerdProcess {
  /** Resolves after the exit and the end of the pipes. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  private readonly child: ChildProcess;
  private readonly lastWords: string[] = [];
  private readonly detail: string[] = [];
  private hasRunOutOfMemory = false;
  private listening: Set<string>;
  private onListening: () => void = () => undefined;

  /**
   * @param heldFiles descriptors to pass from 4 on
   *
   * @param sockets sockets whose opening makes it ready
   *
   * @param redact blanks secrets in its last output
   */
  constructor(
    { file, args, options }: Launch,
    heldFiles: HeldFiles,
    sockets: string[],
    private readonly redact: (text: string) => string,
    private readonly onConsole: (line: TraceLine) => void,
  ) {
    this.listening = new Set(sockets);
    this.child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...heldFiles.fds] });
    // Without a free descriptor Node creates no pipes, contrary to the type, and emits the error a tick later.
    const [, out, err, control] = (this.child.stdio ?? []) as unknown as (Readable | undefined)[];
    if (out) read(out, (line) => this.onOutput(line));
    if (err) read(err, (line) => this.onOutput(line));
    if (control) read(control, (line) => this.control(line));
    this.ended = new Promise((resolve) => {
      // Also emitted for failed signals, possibly several times.
      this.child.on('error', (error) => {
        append(this.detail, error.message);
        if (this.child.pid === undefined) resolve(this.endBy(1));
      });
      this.child.once('close', (code, signal) => resolve(this.endBy(code ?? signal ?? 1)));
    });
  }

  get pid(): number | null {
    return this.child.pid ?? null;
  }

  ready(): Promise<boolean> {
    const opened = new Promise<boolean>((resolve) => {
      this.onListening = () => resolve(true);
      if (this.listening.size === 0) resolve(true);
    });
    return Promise.race([opened, this.ended.then(() => false)]);
  }

  signal(name: 'SIGTERM' | 'SIGKILL'): void {
    this.child.kill(name);
  }

  private onOutput(text: string): void {
    const output = readOutputLine(text, new Date());
    if (output.by === 'code') return this.onConsole(output.line);
    this.hasRunOutOfMemory ||= saysOutOfMemory(output.message);
    const message = this.redact(output.message);
    const words = forAuthor(message);
    if (words !== null) append(this.lastWords, words);
    else append(this.detail, message);
  }

  private control(text: string): void {
    const [, socket] = /"event":"listen","socket":"([^"]+)"/.exec(text) ?? [];
    if (socket !== undefined && this.listening.delete(socket) && this.listening.size === 0) this.onListening();
  }

  private endBy(by: number | NodeJS.Signals): ProcessEnd {
    return { by, hasRunOutOfMemory: this.hasRunOutOfMemory, lastWords: this.lastWords, detail: this.detail };
  }
}

function append(list: string[], words: string): void {
  list.push(words.slice(0, WORDS_CHARS_MAX));
  if (list.length > LAST_WORDS_MAX) list.shift();
}

function read(stream: Readable, onLine: (line: string) => void): void {
  const lines = new LineReader(LINE_CHARS_MAX, 'cut', onLine);
  stream.on('data', (chunk: Buffer) => lines.push(chunk));
  stream.on('end', () => lines.finish());
  // A broken pipe is closed; the process reports its exit.
  stream.on('error', () => stream.destroy());
}

/**
 * Parses a line of output. A line of the code has a numeric time and no source; workerd's own have a source, which the code cannot forge, since
 * its output is the text of a message. Lines that are not JSON come from V8 or the allocator.
 *
 * @param now time of lines printed while the module loads, which have none
 */
function readOutputLine(text: string, now: Date): OutputLine {
  const entry = text.startsWith('{') ? jsonIn(text) : undefined;
  const { timestamp, level, message, source } = (entry ?? {}) as Record<string, unknown>;
  if (typeof message !== 'string') return { by: 'workerd', message: text };
  if (typeof timestamp !== 'number' || source !== undefined) return { by: 'workerd', message };
  const at = timestamp > 0 ? timestamp : now.getTime();
  return { by: 'code', line: { at, level: levelOf(level), message } };
}

export function levelOf(level: unknown): TraceLine['level'] {
  return LEVELS.includes(level as string) ? (level as TraceLine['level']) : 'log';
}

function saysOutOfMemory(message: string): boolean {
  return /heap out of memory|Reached heap limit|out of memory|std::bad_alloc|OOM error in V8|Cannot allocate memory/i.test(
    message,
  );
}

/**
 * Returns the error of the code with its position, without internals of workerd or this host; null for a line unrelated to the
 * code.
 */
function forAuthor(message: string): string | null {
  const error =
    /^service program: (?:Uncaught )?([^]+)$/.exec(message)?.[1] ?? /remote\.jsg\.([^]+)$/.exec(message)?.[1];
  return error === undefined ? null : withoutOurs(error.replace(/\n {2}(at|imported from) /g, '\n    $1 ')).trim();
}

export function withoutOurs(stack: string): string {
  return stack.replace(OUR_PLACES, '');
}
