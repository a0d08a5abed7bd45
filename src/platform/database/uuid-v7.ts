import { randomFillSync } from 'node:crypto';

/** Size of a batch of random bytes: a call takes 2 µs, however few bytes it returns. */
const PORTION_BYTES = 4_096;

const portion = Buffer.alloc(PORTION_BYTES);
let used = PORTION_BYTES;

/** Returns an id with 48 bits of time in milliseconds and 74 random bits (RFC 9562). Ids sort by time, which suits indexes. */
export function uuidV7(at = Date.now()): string {
  if (used === PORTION_BYTES) {
    randomFillSync(portion);
    used = 0;
  }
  used += 16;
  const bytes = portion.subarray(used - 16, used);
  bytes.writeUIntBE(at, 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export function timeOfUuidV7(id: string): Date {
  return new Date(parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
