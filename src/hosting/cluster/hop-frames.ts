import type { IncomingHttpHeaders } from 'node:http';
import type { HostedRequest, ProgramRef } from '../hosting.types.js';
import type { WiredFailure } from './wired-failure.js';

/** What is asked of another process: everything of the request but its body, whose bytes follow. */
export interface HopHead {
  ref: ProgramRef;
  request: Omit<HostedRequest, 'body'>;
  /** Null: there is none. `sha256`: of a body that was known at the start; of one that streams nobody knows it yet. */
  body: { sha256: string | null } | null;
}

/** The beginning of the program's answer. */
export interface HopAnswerHead {
  status: number;
  headers: IncomingHttpHeaders;
}

/** Heads are bounded by what an HTTP head may take (16 KB, twice for a request: its headers, and its path), escaped. */
export const HEAD_BYTES_MAX = 128 * 1024;

/** One piece of the answer. Its kinds: `h`ead, `d`ata, `e`nd, `f`ailure; an answer without one of the last two broke off. */
export type HopFrame =
  | { kind: 'head'; head: HopAnswerHead }
  | { kind: 'data'; data: Buffer }
  | { kind: 'end' }
  | { kind: 'failure'; failure: WiredFailure };

const KINDS = { h: 0x68, d: 0x64, e: 0x65, f: 0x66 } as const;

const TEXT_KINDS: number[] = [KINDS.h, KINDS.e, KINDS.f];

/** One byte of kind, four of length. */
const PREFIX_BYTES = 5;

/** How long a frame of data that follows is. */
export function dataPrefix(bytes: number): Buffer {
  return prefix(KINDS.d, bytes);
}

export function headFrame(head: HopAnswerHead): Buffer {
  return jsonFrame(KINDS.h, head);
}

export function failureFrame(failure: WiredFailure): Buffer {
  return jsonFrame(KINDS.f, failure);
}

export const END_FRAME = prefix(KINDS.e, 0);

function jsonFrame(kind: number, value: object): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  return Buffer.concat([prefix(kind, text.length), text]);
}

function prefix(kind: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(PREFIX_BYTES);
  buffer[0] = kind;
  buffer.writeUInt32BE(bytes, 1);
  return buffer;
}

/** Reads frames out of chunks. Data goes on as it comes, in whatever pieces; nothing but heads and failures is collected. */
export class FrameReader {
  private readonly pending: Buffer[] = [];
  private pendingBytes = 0;
  private kind = 0;
  /** What is missing of the frame that was begun; -1 between frames. */
  private leftBytes = -1;

  constructor(private readonly onFrame: (frame: HopFrame) => void) {}

  /** @throws Error for bytes that are no frames */
  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.leftBytes < 0) rest = this.readPrefix(rest);
      else if (this.kind === KINDS.d) rest = this.passData(rest);
      else rest = this.readText(rest);
    }
  }

  private readPrefix(rest: Buffer): Buffer {
    const after = this.collect(rest, PREFIX_BYTES);
    if (this.pendingBytes < PREFIX_BYTES) return after;
    const bytes = this.taken();
    this.kind = bytes[0] ?? 0;
    this.leftBytes = bytes.readUInt32BE(1);
    const isData = this.kind === KINDS.d;
    if (!isData && !TEXT_KINDS.includes(this.kind)) throw new Error('another process sent what is no frame');
    if (!isData && this.leftBytes > HEAD_BYTES_MAX) throw new Error('another process sent a head that is too long');
    if (this.leftBytes === 0) this.end(Buffer.alloc(0));
    return after;
  }

  private passData(rest: Buffer): Buffer {
    const data = rest.subarray(0, this.leftBytes);
    this.leftBytes -= data.length;
    if (this.leftBytes === 0) this.leftBytes = -1;
    this.onFrame({ kind: 'data', data });
    return rest.subarray(data.length);
  }

  private readText(rest: Buffer): Buffer {
    const after = this.collect(rest, this.leftBytes);
    if (this.pendingBytes === this.leftBytes) this.end(this.taken());
    return after;
  }

  private end(content: Buffer): void {
    this.leftBytes = -1;
    switch (this.kind) {
      case KINDS.h:
        return this.onFrame({ kind: 'head', head: JSON.parse(content.toString()) as HopAnswerHead });
      case KINDS.f:
        return this.onFrame({ kind: 'failure', failure: JSON.parse(content.toString()) as WiredFailure });
      case KINDS.e:
        return this.onFrame({ kind: 'end' });
    }
  }

  /** Takes what is missing to so many bytes. @returns the rest */
  private collect(from: Buffer, bytes: number): Buffer {
    const part = from.subarray(0, bytes - this.pendingBytes);
    this.pending.push(part);
    this.pendingBytes += part.length;
    return from.subarray(part.length);
  }

  private taken(): Buffer {
    const [only] = this.pending;
    const bytes = this.pending.length === 1 && only ? only : Buffer.concat(this.pending);
    this.pending.length = 0;
    this.pendingBytes = 0;
    return bytes;
  }
}
