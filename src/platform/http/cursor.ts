import { createHash } from 'node:crypto';
import { InvalidInputError } from '../errors/domain-error.js';

/** Size of the checksum, by which a truncated or changed cursor is rejected. */
const CHECKSUM_BYTES = 6;

function digest(...parts: string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}

function xorMask(bytes: Buffer, checksum: Buffer, scope: string): Buffer {
  const mask = digest('slipway cursor mask', scope, checksum.toString('hex'));
  return Buffer.from(bytes.map((byte, i) => byte ^ mask[i % mask.length]));
}

/**
 * Returns the opaque cursor that continues a list after the row with this sequence number. Sequence numbers count the rows of
 * all tenants, so they are masked; the checksum rejects a cursor of another list.
 *
 * @param scope the list, such as the id of its namespace, which callers do not know
 */
export function encodeCursor(seq: string, scope = ''): string {
  const checksum = digest('slipway cursor', scope, seq).subarray(0, CHECKSUM_BYTES);
  return Buffer.concat([checksum, xorMask(Buffer.from(seq, 'latin1'), checksum, scope)]).toString('base64url');
}

/**
 * Returns the sequence number in a cursor of {@link encodeCursor}.
 *
 * @throws InvalidInputError for anything else, including numbers above Postgres' bigint
 */
export function decodeCursor(cursor: string, scope = ''): string {
  const bytes = Buffer.from(cursor, 'base64url');
  const text = xorMask(bytes.subarray(CHECKSUM_BYTES), bytes.subarray(0, CHECKSUM_BYTES), scope).toString('latin1');
  const seq = /^([1-9]\d{0,18})$/.exec(text)?.[1];
  if (seq === undefined || BigInt(seq) > 0x7fff_ffff_ffff_ffffn || encodeCursor(seq, scope) !== cursor) {
    throw new InvalidInputError('cursor must be the nextCursor of an earlier answer');
  }
  return seq;
}
