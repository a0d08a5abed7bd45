import { randomUUID } from 'node:crypto';
import { jsonIn } from './json-bounds.js';

const MARK = `number ${randomUUID()} `;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** A number that a double might not represent, or a string that resembles one. */
const LONG_NUMBER = /\d[\d.]{15}|\d[eE][-+\d]|-0/;

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.]*(?:[eE][+-]?\d+)?/g;

/**
 * Works like `jsonIn`, with strings in place of the numbers that a double cannot represent, for {@link exactText}: RFC 8259
 * section 6 leaves their precision to the receiver.
 */
export function exactJsonIn(text: string): unknown {
  const value = jsonIn(text);
  if (value === undefined || !LONG_NUMBER.test(text)) return value;
  return JSON.parse(
    text.replace(TOKEN, (token) =>
      token.startsWith('"') || JSON.stringify(Number(token)) === token ? token : `"${MARK}${token}"`,
    ),
  );
}

/** Returns the JSON text of such a value, with the digits of its numbers. */
export function exactText(json: string): string {
  return json.includes(MARK) ? json.replace(MARKED, '$1') : json;
}

export function exactBytes(chunk: unknown): unknown {
  if (typeof chunk === 'string') return exactText(chunk);
  if (!(chunk instanceof Uint8Array)) return chunk;
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return bytes.includes(MARK) ? exactText(bytes.toString('utf8')) : chunk;
}
