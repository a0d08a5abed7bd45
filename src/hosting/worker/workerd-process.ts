import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { HeldFiles, Launch } from '../sandbox/sandbox.js';
import { LineReader } from '../../platform/text/line-reader.js';
import type { TraceLine } from '../hosting.types.js';
import { forAuthor, readOutputLine, saysOutOfMemory } from './workerd-output.js';

/** Characters of one line of its output. */
const LINE_CHARS_MAX = 131_072;

/** What workerd says of its end that is kept for the author. */
const LAST_WORDS_MAX = 20;

/** Characters of each. */
const WORDS_CHARS_MAX = 4_096;

/** How a process ended. */
export interface ProcessEnd {
  /** The code, or the signal. */
  by: number | NodeJS.Signals;
  hasRunOutOfMemory: boolean;
  /** What it said last that its author may read; empty for nothing. */
  lastWords: string[];
  /** What else it said last, for the operator. */
  detail: string[];
}

/** One process of workerd: its pipes are read to the end, and nothing of it can throw into the rest of the service. */
export class WorkerdProcess {
  /** Resolves when the process is gone and its pipes are read. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  private readonly child: ChildProcess;
  private readonly lastWords: string[] = [];
  private readonly detail: string[] = [];
  private hasRunOutOfMemory = false;
  private listening: Set<string>;
  private onListening: () => void = () => undefined;

  /**
   * @param held what it gets at its descriptors from 4 on
   * @param sockets whose opening makes it ready
   */
  constructor(
    { file, args, options }: Launch,
    held: HeldFiles,
    sockets: string[],
    private readonly onConsole: (line: TraceLine) => void,
  ) {
    this.listening = new Set(sockets);
    this.child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...held.fds] });
    // Without a free descriptor Node makes no pipes at all, whatever the type says, and tells the error a tick later.
    const [, out, err, control] = (this.child.stdio ?? []) as unknown as (Readable | undefined)[];
    if (out) read(out, (line) => this.hear(line));
    if (err) read(err, (line) => this.hear(line));
    if (control) read(control, (line) => this.control(line));
    this.ended = new Promise((resolve) => {
      // Also of signals it may not be sent, so more than once.
      this.child.on('error', (error) => {
        keep(this.detail, error.message);
        if (this.child.pid === undefined) resolve(this.endBy(1));
      });
      this.child.once('close', (code, signal) => resolve(this.endBy(code ?? signal ?? 1)));
    });
  }

  get pid(): number | null {
    return this.child.pid ?? null;
  }

  /** Resolves true when every socket is open, false when the process ended before. */
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

  private hear(text: string): void {
    const heard = readOutputLine(text, new Date());
    if (heard.by === 'code') return this.onConsole(heard.line);
    this.hasRunOutOfMemory ||= saysOutOfMemory(heard.message);
    const words = forAuthor(heard.message);
    if (words !== null) keep(this.lastWords, words);
    else keep(this.detail, heard.message);
  }

  private control(text: string): void {
    const [, socket] = /"event":"listen","socket":"([^"]+)"/.exec(text) ?? [];
    if (socket !== undefined && this.listening.delete(socket) && this.listening.size === 0) this.onListening();
  }

  private endBy(by: number | NodeJS.Signals): ProcessEnd {
    return { by, hasRunOutOfMemory: this.hasRunOutOfMemory, lastWords: this.lastWords, detail: this.detail };
  }
}

function keep(list: string[], words: string): void {
  list.push(words.slice(0, WORDS_CHARS_MAX));
  if (list.length > LAST_WORDS_MAX) list.shift();
}

function read(stream: Readable, onLine: (line: string) => void): void {
  const lines = new LineReader(LINE_CHARS_MAX, 'cut', onLine);
  stream.on('data', (chunk: Buffer) => lines.push(chunk));
  stream.on('end', () => lines.end());
  // A pipe that breaks has ended; the end of the process is told by the process.
  stream.on('error', () => stream.destroy());
}
