import { InvalidInputError } from '../errors/domain-error.js';

/** The opaque cursor that continues a list after the row with this sequence number. */
export function encodeCursor(seq: string): string {
  return Buffer.from(`s${seq}`, 'latin1').toString('base64url');
}

/**
 * The sequence number behind a cursor of {@link encodeCursor}.
 *
 * @throws InvalidInputError for anything else, including numbers Postgres' bigint cannot hold
 */
export function decodeCursor(cursor: string): string {
  const seq = /^s([1-9]\d{0,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  if (seq === undefined || BigInt(seq) > 0x7fff_ffff_ffff_ffffn || encodeCursor(seq) !== cursor) {
    throw new InvalidInputError('cursor must be the nextCursor of an earlier answer');
  }
  return seq;
}
