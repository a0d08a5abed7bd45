import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Hosting } from '../hosting.js';
import { AUTH_ADAPTER_PATH, INVOCATION_HEADER, SESSION_HEADER, type ProgramRef } from '../hosting.types.js';
import type { AuthAdapter } from '../../mcp/oauth/auth-adapter.types.js';
import type { Channel } from '../../mcp/protocol/channel.js';
import { HttpChannels } from '../../mcp/client/http/http-channels.js';
import type { HttpTarget } from '../../mcp/client/http/http-wire.js';
import { HostedAuthAdapter } from './hosted-auth-adapter.js';
import { HostedDispatcher } from './hosted-dispatcher.js';
import { SessionNames } from './session-names.js';

/** Callers of one stateful program that may have sessions of their own at once, through one channel. */
const SESSIONS_MAX = 1_000;

/** The profile key of callers without a key of their own. No client session and no key has this name. */
const SHARED = 'shared';

/** How a program is called. */
export interface HostedCall {
  /** Where it answers MCP. */
  mcpPath: string;
  /** What its callers are told its name is, such as `"acme/weather"`. */
  name: string;
  headers?: Record<string, string>;
  query?: readonly [name: string, value: string][];
  bearer?: HttpTarget['bearer'];
  /**
   * Whose sessions these are, such as `connection <id>`: with it, every process leads a caller to the same one. Without it
   * sessions are this channel's own, and end with it.
   */
  sessionsOf?: string;
}

/** The way to MCP servers whose code runs here. */
@Injectable()
export class HostedChannelsService {
  private readonly host: string;

  constructor(
    private readonly hosting: Hosting,
    private readonly channels: HttpChannels,
    private readonly names: SessionNames,
    private readonly env: Env,
  ) {
    this.host = new URL(env.baseUrl).host;
  }

  /** The auth adapter of a program, for a caller with these values. */
  adapterOf(ref: ProgramRef, { name, query = [] }: Pick<HostedCall, 'name' | 'query'>): AuthAdapter {
    const url = hostedAddress(ref, AUTH_ADAPTER_PATH);
    for (const [key, value] of query) url.searchParams.append(key, value);
    return new HostedAuthAdapter(new HostedDispatcher(this.hosting, ref, this.host), url, name);
  }

  /** A channel of its own to a program, which is started by the first call. */
  channelTo(ref: ProgramRef, { mcpPath, name, headers = {}, query = [], bearer, sessionsOf }: HostedCall): Channel {
    const url = hostedAddress(ref, mcpPath);
    for (const [key, value] of query) url.searchParams.append(key, value);
    // A bundle's sessions are processes, which nothing brings back.
    const isKept = ref.isStateful && ref.engine === 'worker' && sessionsOf !== undefined;
    const nameOf = isKept ? this.names.within(ref.ownerId, sessionsOf, headers, query) : null;
    return this.channels.channelTo({
      url,
      name,
      headers: withoutOurs(headers),
      bearer,
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
      door: new HostedDispatcher(this.hosting, ref, this.host),
      invocationHeader: INVOCATION_HEADER,
      sessionsMax: SESSIONS_MAX,
      ...(ref.isStateful && { sessionPerCaller: { sharedKey: nameOf ? SHARED : undefined } }),
      ...(nameOf && { sessions: { header: SESSION_HEADER, nameOf } }),
    });
  }
}

/** Names a program where an upstream has an address: another version has another one, and nothing ever dials it. */
export function hostedAddress({ id }: ProgramRef, path: string): URL {
  return new URL(path, `https://${id}.hosted.invalid`);
}

/** Headers in which the runtime is told things; nobody outside may say them. */
const OURS = /^x-slipway-/i;

/** The headers without those that only this service may set. */
export function withoutOurs<V>(headers: Record<string, V>): Record<string, V> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OURS.test(name)));
}
