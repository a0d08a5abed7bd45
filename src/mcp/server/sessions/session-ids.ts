import { createHmac, randomBytes } from 'node:crypto';
import type { Env } from '../../../config/env.js';
import { isSameSignature, keysFor } from '../../../platform/http/secrets.js';
import { LEGACY_VERSIONS } from '../../protocol/protocol.js';
import type { Askable } from '../client-capabilities.js';

/** A session id is good for this long, used or not; then its client initializes anew, as on any 404. */
const SESSION_MS_MAX = 24 * 60 * 60_000;

/** Ids that were found good, kept so that the calls of a session need no signature each. */
const OPENED_MAX = 10_000;

/** What the ids we mint begin with. Others are invented by clients and mean nothing to us. */
const MARK = 'sw1.';

/** What a legacy client said when it opened its session. */
export interface ClientSession {
  /** Names the session within this service; unguessable. */
  key: string;
  /** The revision that was agreed on. */
  version: string;
  askable: Askable;
  /** In epoch milliseconds. */
  expiresAt: number;
}

/**
 * Session ids that carry their session, so that every process knows it without a store. Each is signed for one caller and
 * one target: nobody else's request makes it valid.
 */
export class SessionIds {
  private readonly secrets: Buffer[];
  private readonly opened = new Map<string, ClientSession>();

  constructor(env: Pick<Env, 'encryptionKeys'>) {
    this.secrets = keysFor(env, 'slipway mcp sessions');
  }

  /** @param caller who may use it, and for what target */
  mint(caller: string, version: string, askable: Askable): { id: string; session: ClientSession } {
    const key = randomBytes(16).toString('base64url');
    const expiresAt = Date.now() + SESSION_MS_MAX;
    const { elicitation, sampling, roots } = askable;
    const fields = [key, Math.floor(expiresAt / 1000), version, elicitation, sampling, roots];
    const payload = Buffer.from(fields.join(' ')).toString('base64url');
    return {
      id: `${MARK}${payload}.${sign(this.secrets[0], payload, caller)}`,
      session: { key, version, askable, expiresAt },
    };
  }

  /**
   * The session of an id: undefined when the id is none of ours, null when it is over, was changed, or belongs to another
   * caller or target.
   */
  open(id: string | undefined, caller: string): ClientSession | null | undefined {
    if (!isOurs(id)) return undefined;
    const name = `${id} ${caller}`;
    const session = this.opened.get(name) ?? this.read(id, caller);
    if (!session || session.expiresAt <= Date.now()) return null;
    if (!this.opened.has(name)) {
      if (this.opened.size >= OPENED_MAX) this.opened.delete(this.opened.keys().next().value as string);
      this.opened.set(name, session);
    }
    return session;
  }

  /** What an id of our form says, if its signature holds. */
  private read(id: string, caller: string): ClientSession | null {
    const [payload = '', signature = '', ...more] = id.slice(MARK.length).split('.');
    if (more.length > 0 || !this.secrets.some((secret) => isSameSignature(signature, sign(secret, payload, caller))))
      return null;
    const [key = '', expires, version = '', ...bits] = Buffer.from(payload, 'base64url').toString().split(' ');
    const [elicitation = 0, sampling = 0, roots = 0] = bits.map(Number);
    if (!(LEGACY_VERSIONS as readonly string[]).includes(version)) return null;
    return { key, version, askable: { elicitation, sampling, roots }, expiresAt: Number(expires) * 1000 };
  }
}

/** Whether an id has the form of those we mint. */
export function isOurs(id: string | undefined): id is string {
  return id?.startsWith(MARK) ?? false;
}

function sign(secret: Buffer | undefined, payload: string, caller: string): string {
  if (!secret) throw new Error('MCP sessions need ENCRYPTION_KEYS');
  return createHmac('sha256', secret).update(`${payload}\n${caller}`).digest('base64url');
}
