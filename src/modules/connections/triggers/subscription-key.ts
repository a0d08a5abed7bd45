import { createHash } from 'node:crypto';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { isObject, isWithinDepth } from '../../../platform/text/json.js';
import { DEPTH_MAX } from '../../../platform/database/storable.js';

const PARAMS_BYTES_MAX = 16 * 1024;
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

/** What one subscription is: there is one of each, and subscribing again extends it. */
export interface SubscriptionKey {
  namespace: string;
  connectionId: string;
  trigger: string;
  params: Record<string, unknown>;
  url: string;
}

/** The id of a subscription: the same for the same key, however its params are ordered. */
export function subscriptionId({ namespace, connectionId, trigger, params, url }: SubscriptionKey): string {
  const key = JSON.stringify([namespace, connectionId, trigger, ordered(params), url]);
  return `trg_${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
}

/** @throws InvalidInputError unless it is `whsec_` and the base64 of 24 to 64 bytes */
export function requireSecret(secret: string): void {
  const encoded = secret.replace(/^whsec_/, '');
  const bytes = Buffer.from(encoded, 'base64');
  const isBase64 = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  if (isBase64 && bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX) return;
  throw new InvalidInputError(
    `delivery.secret must be whsec_ and the base64 of ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes`,
  );
}

/** @throws InvalidInputError when they are larger than 16 KB, or nested beyond 100 levels */
export function requireParams(params: Record<string, unknown>): void {
  if (!isWithinDepth(params, DEPTH_MAX))
    throw new InvalidInputError(`params must not be nested beyond ${DEPTH_MAX} levels`);
  if (Buffer.byteLength(JSON.stringify(params)) > PARAMS_BYTES_MAX) {
    throw new InvalidInputError(`params must be at most ${PARAMS_BYTES_MAX / 1024} KB of JSON`);
  }
}

/** The value with the members of its objects in order. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isObject(value)) return value;
  return Object.keys(value)
    .sort()
    .map((name) => [name, ordered(value[name])]);
}
