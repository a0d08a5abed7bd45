import { Injectable } from '@nestjs/common';
import { CredentialsService } from '../../oauth/credentials.service.js';

/** That a connection has no token is believed this long; an authorization makes a new channel, which asks at once. */
const NONE_KNOWN_MS = 5_000;

/** The token of a channel's connection for this upstream; `rejected` is the one it just answered 401 to. */
export type Bearer = (upstreamUrl: string, rejected?: string) => Promise<string | null>;

/** What each connection is authorized with: its own token, and nobody else's. */
@Injectable()
export class ConnectionBearer {
  constructor(private readonly credentials: CredentialsService) {}

  /**
   * The tokens of one channel; undefined when the connection's own headers authorize it. No query while it is known what
   * there is.
   */
  of(id: string, headers: Record<string, string>): Bearer | undefined {
    if (headers.authorization !== undefined) return undefined;
    let none = { upstreamUrl: '', until: 0 };
    return async (upstreamUrl, rejected) => {
      if (none.upstreamUrl === upstreamUrl && Date.now() < none.until) return null;
      const token = await this.credentials.accessToken({ kind: 'connection', id }, upstreamUrl, rejected);
      if (token === null) none = { upstreamUrl, until: Date.now() + NONE_KNOWN_MS };
      return token;
    };
  }
}
