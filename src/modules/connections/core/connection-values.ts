import { Injectable } from '@nestjs/common';
import { Vault } from '../../../platform/vault/vault.js';
import { hasQuery, maskedQuery } from '../../../platform/vault/masked-url.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { OAuthChoice } from '../../oauth/credentials.types.js';
import type { SetOAuthDto } from './connection.dto.js';
import type { Connection, QueryValues } from './connection.entity.js';

type UrlColumns = Pick<Connection, 'mcpUrl' | 'sealedUrl' | 'mcpUrlHash'>;

/** Values that are encrypted for the row of a connection and that the API never returns. */
@Injectable()
export class ConnectionValues {
  constructor(private readonly vault: Vault) {}

  /** Encrypts headers, with names in lower case. */
  sealHeaders(id: string, headers: Record<string, string> | undefined): string | null {
    if (headers === undefined || Object.keys(headers).length === 0) return null;
    const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    return this.vault.seal(JSON.stringify(Object.fromEntries(lowerCase)), id);
  }

  openHeaders(id: string, sealed: string | null): Record<string, string> {
    return sealed === null ? {} : (JSON.parse(this.vault.open(sealed, id)) as Record<string, string>);
  }

  sealQuery(id: string, query: QueryValues): string | null {
    return query.length === 0 ? null : this.vault.seal(JSON.stringify(query), id);
  }

  /** Masks the query values, and seals the whole URL. */
  sealUrl(id: string, url: string | null): UrlColumns {
    if (url === null || !hasQuery(url)) return { mcpUrl: url, sealedUrl: null, mcpUrlHash: null };
    return { mcpUrl: maskedQuery(url), sealedUrl: this.vault.seal(url, id), mcpUrlHash: this.vault.hash(url) };
  }

  openUrl({ id, mcpUrl, sealedUrl }: Pick<Connection, 'id' | 'mcpUrl' | 'sealedUrl'>): string | null {
    return sealedUrl === null ? mcpUrl : this.vault.open(sealedUrl, id);
  }

  /** Returns the hashes by which rows of this URL are found; null for a URL without a query, which is stored in clear. */
  urlHashes(url: string): string[] | null {
    return hasQuery(url) ? this.vault.hashes(url) : null;
  }

  /**
   * Returns the stored form of `oauth`. A body without a secret keeps the stored one if client and issuer are the same.
   *
   * @throws InvalidInputError for a secret without a client
   */
  oauthOf(
    { id, oauth: stored, sealedOauthSecret }: Pick<Connection, 'id' | 'oauth' | 'sealedOauthSecret'>,
    sent: SetOAuthDto | null,
  ): { oauth: OAuthChoice | null; secret: string | null } {
    const { clientSecret, ...choice } = JSON.parse(JSON.stringify(sent ?? {})) as SetOAuthDto;
    if (clientSecret && choice.clientId === undefined)
      throw new InvalidInputError('oauth.clientSecret needs oauth.clientId');
    const isSameClient = stored?.clientId !== undefined && stored.clientId === choice.clientId;
    const isKept = clientSecret === undefined && isSameClient && stored.issuer === choice.issuer;
    return {
      oauth: Object.keys(choice).length === 0 ? null : choice,
      secret: isKept ? this.openOauthSecret(id, sealedOauthSecret) : (clientSecret ?? null),
    };
  }

  sealOauthSecret(id: string, secret: string | null): string | null {
    return secret === null ? null : this.vault.seal(secret, id);
  }

  openOauthSecret(id: string, sealed: string | null): string | null {
    return sealed === null ? null : this.vault.open(sealed, id);
  }

  openQuery(id: string, sealed: string | null): QueryValues {
    return sealed === null ? [] : (JSON.parse(this.vault.open(sealed, id)) as QueryValues);
  }
}
