import type { SerializedError } from './error-codec.js';

/**
 * One piece of an internal HTTP message: one byte for its kind, four for its length, then its content.
 *
 * A request is a head and the bytes of its body. A response is a head and data (an HTTP response of a program), or
 * messages (JSON); it ends with `end` or `failure`, and without them it was cut off.
 */
export type Frame =
  | { kind: 'head'; value: unknown }
  | { kind: 'data'; data: Buffer }
  | { kind: 'message'; value: unknown }
  | { kind: 'failure'; value: SerializedError }
  | { kind: 'end' };

const KINDS = { head: 0x68, data: 0x64, message: 0x6d, failure: 0x66, end: 0x65 } as const;

type Kind = keyof typeof KINDS;

const nameOf = new Map<number, Kind>(Object.entries(KINDS).map(([name, byte]) => [byte, name as Kind]));

/** Maximum size of a head: twice that of HTTP (16 KB of headers and a path), escaped as JSON. */
export const HEAD_BYTES_MAX = 128 * 1024;

/** Maximum size of a message: an MCP message of up to 16 MB, escaped again as a JSON string. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

export const PREFIX_BYTES = 5;

export const END_FRAME = framePrefix('end', 0);

/** Returns the prefix of a frame, before its content. */
export function framePrefix(kind: Kind, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(PREFIX_BYTES);
  buffer[0] = KINDS[kind];
  buffer.writeUInt32BE(bytes, 1);
  return buffer;
}

export function textFrame(kind: 'head' | 'message' | 'failure', text: string): Buffer {
  const content = Buffer.from(text);
  return Buffer.concat([framePrefix(kind, content.length), content]);
}

/** @throws Error for bytes that are not a frame, and for a frame that is too long */
export function parsePrefix(prefix: Buffer): { kind: Kind; bytes: number } {
  const kind = nameOf.get(prefix[0] ?? 0);
  const bytes = prefix.readUInt32BE(1);
  if (!kind) throw new Error('Another process sent something that is not a frame');
  const bytesMax = kind === 'message' ? MESSAGE_BYTES_MAX : HEAD_BYTES_MAX;
  if (kind !== 'data' && bytes > bytesMax) throw new Error(`Another process sent a ${kind} that is too long`);
  return { kind, bytes };
}

/** Reads frames. Data is forwarded as it arrives, in any pieces; other frames are collected. */
export class FrameReader {
  private readonly pending: Buffer[] = [];
  private pendingBytes = 0;
  private kind: Kind = 'end';
  /** Number of missing bytes of the current frame; -1 between frames. */
  private leftBytes = -1;

  constructor(private readonly onFrame: (frame: Frame) => void) {}

  /** @throws Error for bytes that are not frames */
  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.leftBytes < 0) {
        rest = this.collect(rest, PREFIX_BYTES);
        if (this.pendingBytes < PREFIX_BYTES) return;
        const { kind, bytes } = parsePrefix(this.takeCollected());
        this.kind = kind;
        this.leftBytes = bytes;
        if (bytes === 0) this.complete(Buffer.alloc(0));
      } else if (this.kind === 'data') {
        const data = rest.subarray(0, this.leftBytes);
        rest = rest.subarray(data.length);
        this.leftBytes -= data.length;
        if (this.leftBytes === 0) this.leftBytes = -1;
        this.onFrame({ kind: 'data', data });
      } else {
        rest = this.collect(rest, this.leftBytes);
        if (this.pendingBytes === this.leftBytes) this.complete(this.takeCollected());
      }
    }
  }

  private complete(content: Buffer): void {
    const { kind } = this;
    this.leftBytes = -1;
    switch (kind) {
      case 'head':
      case 'message':
        return this.onFrame({ kind, value: JSON.parse(content.toString()) });
      case 'failure':
        return this.onFrame({ kind, value: JSON.parse(content.toString()) as SerializedError });
      case 'end':
        return this.onFrame({ kind });
      case 'data':
    }
  }

  /** @returns the rest */
  private collect(from: Buffer, bytes: number): Buffer {
    const part = from.subarray(0, bytes - this.pendingBytes);
    this.pending.push(part);
    this.pendingBytes += part.length;
    return from.subarray(part.length);
  }

  private takeCollected(): Buffer {
    const [only] = this.pending;
    const bytes = this.pending.length === 1 && only ? only : Buffer.concat(this.pending);
    this.pending.length = 0;
    this.pendingBytes = 0;
    return bytes;
  }
}
