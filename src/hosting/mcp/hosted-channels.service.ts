import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';
import { Hosting } from '../hosting.js';
import {
  AUTH_ADAPTER_PATH,
  INVOCATION_HEADER,
  SCAN_HEADER,
  SESSION_HEADER,
  type ProgramRef,
} from '../hosting.types.js';
import type { AuthAdapter } from '../../mcp/oauth/tokens.js';
import type { Channel } from '../../mcp/protocol/channel.js';
import { PROGRAM_START_MS } from '../../mcp/protocol/mcp-errors.js';
import { HttpChannels } from '../../mcp/client/http/http-channel.js';
import type { HttpTarget } from '../../mcp/client/http/http-wire.js';
import { HostedAuthAdapter } from './hosted-auth-adapter.js';
import { HostedDispatcher } from './hosted-dispatcher.js';
/** Limit of concurrent caller-owned sessions of a stateful program per channel. */
const SESSIONS_MAX = 1_000;

const SHARED = 'shared';

export interface HostedCall {
  mcpPath: string;
  name: string;
  headers?: Record<string, string>;
  query?: readonly [name: string, value: string][];
  bearer?: HttpTarget['bearer'];
  /**
   * Scope of the sessions, such as `connection <id>`: every process then continues the same session for a caller.
   * Without it sessions belong to this channel and are closed with it.
   */
  sessionsOf?: string;
  /** True for a scan, whose responses contain the messages of the code's errors, for its author. */
  isScan?: boolean;
}

@Injectable()
export class HostedChannelsService {
  private readonly host: string;
  /** The first encryption key of the service; rotating it begins new sessions. */
  private readonly secret: Buffer | undefined;

  constructor(
    private readonly hosting: Hosting,
    private readonly httpChannels: HttpChannels,
    private readonly env: Env,
  ) {
    this.host = new URL(env.baseUrl).host;
    [this.secret] = keysFor(env, 'slipway hosted sessions');
  }

  adapterOf(ref: ProgramRef, { name, query = [] }: Pick<HostedCall, 'name' | 'query'>): AuthAdapter {
    const url = hostedAddress(ref, AUTH_ADAPTER_PATH);
    for (const [key, value] of query) url.searchParams.append(key, value);
    return new HostedAuthAdapter(new HostedDispatcher(this.hosting, ref, this.host), url, name);
  }

  /** Returns a channel to a program, which the first call starts. */
  channelTo(
    ref: ProgramRef,
    { mcpPath, name, headers = {}, query = [], bearer, sessionsOf, isScan }: HostedCall,
  ): Channel {
    const url = hostedAddress(ref, mcpPath);
    for (const [key, value] of query) url.searchParams.append(key, value);
    // Sessions of a bundle are processes and cannot be restored.
    const isKept = ref.isStateful && ref.engine === 'worker' && sessionsOf !== undefined;
    const { secret } = this;
    // Every process, even after a restart, continues the same session. A name grants access, so it is an HMAC; JSON
    // separates its parts unambiguously.
    const nameOf =
      isKept && secret
        ? (profileKey: string) =>
            createHmac('sha256', secret)
              .update(JSON.stringify([ref.ownerId, sessionsOf, headers, query, profileKey]))
              .digest('base64url')
        : null;
    return this.httpChannels.channelTo({
      url,
      name,
      headers: { ...withoutOurs(headers), ...(isScan && { [SCAN_HEADER]: '1' }) },
      bearer,
      connectTimeoutMs: PROGRAM_START_MS,
      dispatcher: new HostedDispatcher(this.hosting, ref, this.host),
      invocationHeader: INVOCATION_HEADER,
      sessionsMax: SESSIONS_MAX,
      ...(ref.isStateful && { sessionPerCaller: { sharedKey: nameOf ? SHARED : undefined } }),
      ...(nameOf && { sessions: { header: SESSION_HEADER, nameOf } }),
    });
  }
}

/** Returns a placeholder URL of a program, different for each version. Nothing connects to this URL. */
export function hostedAddress({ id }: ProgramRef, path: string): URL {
  return new URL(path, `https://${id}.hosted.invalid`);
}

/** Headers between this service and its runtime, which external requests must not set. */
const OURS = /^x-slipway-/i;

export function withoutOurs<V>(headers: Record<string, V>): Record<string, V> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OURS.test(name)));
}
