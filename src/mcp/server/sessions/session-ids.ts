/**
 * Session ids (`Mcp-Session-Id`) that contain their session: any process reads them without a store.
 *
 * Form: `sw1.<payload>.<signature>`. The signature is an HMAC with a key derived from `ENCRYPTION_KEYS`, over payload
 * and caller (the id of the key, and the endpoint), so nobody else can use an id. It is valid for 24 hours, used or
 * not.
 *
 * An id that is changed, expired, foreign or signed with a removed key opens as null. The endpoint then returns 404,
 * and the client sends `initialize` again. `live-sessions.ts` keeps all other state.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { isSameSignature, keysFor } from '../../../platform/http/secrets.js';
import type { CallerProfile } from '../../protocol/channel.js';
import { LEGACY_VERSIONS } from '../../protocol/protocol.js';
import { extrasOf, sharedProfile } from '../../protocol/session.js';
import { capabilitiesOf, capabilityNames } from '../client-capabilities.js';

const SESSION_MS_MAX = 24 * 60 * 60_000;

/** Maximum number of cached session ids: verified ones, closed ones, and old ones that were looked up. */
export const SESSIONS_MAX = 10_000;

const MARK = 'sw1.';

export interface ClientSession {
  /** Key of the session, unguessable within this service. */
  key: string;
  version: string;
  /** Capabilities of the client, as `capabilityNames` lists them. */
  capabilities: readonly string[];
  /** Null if the client's `initialize` had no name. */
  client: string | null;
  passed: Record<string, unknown>;
  /** Profile that clients with equal extensions share; undefined without extensions. */
  shared: CallerProfile | undefined;
  expiresAt: number;
}

@Injectable()
export class SessionIds {
  private readonly secrets: Buffer[];
  private readonly opened = new Map<string, ClientSession>();

  constructor(@Inject(Env) env: Pick<Env, 'encryptionKeys'>) {
    this.secrets = keysFor(env, 'slipway mcp sessions');
  }

  /**
   * @param caller caller and target that may use it
   * @param passed capabilities of the client, as `passedCapabilities` returns them
   * @param client its name
   */
  mint(
    caller: string,
    version: string,
    passed: Record<string, unknown>,
    client: string | null = null,
  ): { id: string; session: ClientSession } {
    const key = randomBytes(16).toString('base64url');
    const expiresAt = Date.now() + SESSION_MS_MAX;
    const capabilities = capabilityNames(passed, version);
    const text = JSON.stringify(passed);
    const isNamed = text === JSON.stringify(capabilitiesOf(capabilities) ?? {});
    const fields = [key, Math.floor(expiresAt / 1000), version, capabilities.join('+')];
    // Processes of older versions read the first four or five fields.
    if (!isNamed || client !== null) fields.push(Buffer.from(text).toString('base64url'));
    if (client !== null) fields.push(Buffer.from(client).toString('base64url'));
    const payload = Buffer.from(fields.join(' ')).toString('base64url');
    return {
      id: `${MARK}${payload}.${sign(this.secrets[0], payload, caller)}`,
      session: { key, version, capabilities, client, passed, shared: sharedBy(passed), expiresAt },
    };
  }

  /**
   * Returns the session of an id; null when the id is not Slipway's, has expired, was changed, or belongs to another
   * caller or target.
   */
  open(id: string, caller: string): ClientSession | null {
    const name = `${id} ${caller}`;
    const session = this.opened.get(name) ?? this.read(id, caller);
    if (!session || session.expiresAt <= Date.now()) return null;
    if (!this.opened.has(name)) {
      if (this.opened.size >= SESSIONS_MAX) this.opened.delete(this.opened.keys().next().value as string);
      this.opened.set(name, session);
    }
    return session;
  }

  private read(id: string, caller: string): ClientSession | null {
    if (!id.startsWith(MARK)) return null;
    const [payload = '', signature = '', ...more] = id.slice(MARK.length).split('.');
    if (more.length > 0 || !this.secrets.some((secret) => isSameSignature(signature, sign(secret, payload, caller))))
      return null;
    const fields = Buffer.from(payload, 'base64url').toString().split(' ');
    const [key = '', expires, version = '', names = '', text, name] = fields;
    if (!(LEGACY_VERSIONS as readonly string[]).includes(version)) return null;
    const capabilities = names.split('+').filter(Boolean);
    const passed =
      text === undefined
        ? (capabilitiesOf(capabilities) ?? {})
        : (JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
    const client = name === undefined ? null : Buffer.from(name, 'base64url').toString();
    return { key, version, capabilities, client, passed, shared: sharedBy(passed), expiresAt: Number(expires) * 1000 };
  }
}

function sharedBy(passed: Record<string, unknown>): CallerProfile | undefined {
  return sharedProfile('legacy', extrasOf(passed));
}

/** Returns the start of a session in epoch milliseconds, up to a second early. */
export function beganAt({ expiresAt }: ClientSession): number {
  return Math.floor(expiresAt / 1000) * 1000 - SESSION_MS_MAX;
}

function sign(secret: Buffer | undefined, payload: string, caller: string): string {
  if (!secret) throw new Error('MCP sessions need ENCRYPTION_KEYS');
  return createHmac('sha256', secret).update(`${payload}\n${caller}`).digest('base64url');
}
