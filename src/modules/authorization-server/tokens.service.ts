/**
 * Checks OAuth access tokens for guard and fast path: like API keys, by one query that is cached for 5 s. A token opens only the MCP
 * endpoint that its user authorized, by id, whatever its current name. The 401 response is the same whether the endpoint exists or not
 * (`WWW-Authenticate` with `resource_metadata`, RFC 9728 section 5.1).
 */
import type { IncomingMessage } from 'node:http';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { readMemberships } from '../auth/memberships.access.js';
import { Env } from '../../config/env.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { hashSecret } from '../../platform/http/secrets.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import type { Caller, TokenSource } from '../auth/access.types.js';
import { UnauthenticatedError } from '../auth/auth.errors.js';
import { mcpEndpointAt, pathOfEndpoint, TOKEN_PREFIX, type McpEndpoint } from '../auth/mcp-endpoint.access.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import { MCP_SCOPE } from './authorization-server.types.js';
import { metadataUrl } from './protected-resource.js';

/** Error of an invalid token (RFC 6750 section 3.1). */
const INVALID_TOKEN = 'error="invalid_token", ';

interface KnownToken {
  caller: Caller;
  expiresAt: number;
}

@Injectable()
export class TokensService implements TokenSource, OnModuleInit, OnApplicationShutdown {
  private readonly cachedTokens = new RowCache<KnownToken>((token) => this.load(token));
  private readonly used = new WriteBehind<string, Date>('oauth grants', (batch) =>
    this.authorizationServerRepository.saveLastUses([...batch.keys()], [...batch.values()]),
  );

  constructor(
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly apiKeysService: ApiKeysService,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly revocationRegistry: RevocationRegistry,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('authorization-server.grants-ended', ({ grantIds }) =>
      grantIds.forEach((id) => this.forget(id)),
    );
    await this.pubSub.subscribe('auth.account-changed', ({ accountId }) =>
      // eslint-disable-next-line no-restricted-syntax -- names cached rows, decides nothing
      this.cachedTokens.dropWhere(({ caller }) => caller.accountId === accountId),
    );
  }

  async onApplicationShutdown(): Promise<void> {
    await this.used.onApplicationShutdown();
  }

  verify(token: string, request: IncomingMessage): Caller | Promise<Caller> {
    if (!token.startsWith(TOKEN_PREFIX)) throw UnauthenticatedError.invalid(this.challenge(request, INVALID_TOKEN));
    const cached = this.cachedTokens.peek(token);
    if (cached) return this.use(cached, request);
    return this.cachedTokens.get(token).then((row) => {
      if (!row)
        throw this.refusal(request, 'The access token is not valid: it is revoked or has expired. Log in again.');
      return this.use(row, request);
    });
  }

  challenge(request: IncomingMessage, error = ''): string | undefined {
    if (!endpointOf(request)) return undefined;
    return `${error}resource_metadata="${metadataUrl(request, this.env)}", scope="${MCP_SCOPE}"`;
  }

  validAmong(ids: string[]): Promise<Set<string>> {
    return this.authorizationServerRepository.grantsAmong(ids);
  }

  announceRevocation(grantIds: string[]): void {
    if (grantIds.length === 0) return;
    this.pubSub.announce('authorization-server.grants-ended', { grantIds });
  }

  private use({ caller, expiresAt }: KnownToken, request: IncomingMessage): Caller {
    const endpoint = endpointOf(request);
    if (!endpoint || pathOfEndpoint(endpoint) !== caller.endpoint) {
      throw this.refusal(request, `The access token opens only ${caller.endpoint}. REST needs an API key.`);
    }
    if (expiresAt <= Date.now())
      throw this.refusal(request, 'The access token has expired: refresh it, or log in again.');
    this.used.set(caller.keyId, new Date());
    return caller;
  }

  private refusal(request: IncomingMessage, reason: string): UnauthenticatedError {
    return new UnauthenticatedError(reason, this.challenge(request, INVALID_TOKEN));
  }

  private async load(token: string): Promise<KnownToken | null> {
    const row = await this.authorizationServerRepository.findToken(hashSecret(token));
    if (!row) return null;
    const { connectionId, namespace, slug } = row;
    if (slug === null && namespace === null) return null;
    const endpoint: McpEndpoint =
      slug !== null
        ? { kind: 'server', slug: slug.toLowerCase() }
        : connectionId === null
          ? { kind: 'namespace', namespace: String(namespace), name: '' }
          : { kind: 'connection', namespace: String(namespace), name: connectionId };
    const { accountId, grantId, rootKeyId, expiresAt, overrides, roles, loginsEpoch } = row;
    const limits = this.accountLimitsService.limitsOf(overrides);
    const caller = {
      accountId,
      keyId: grantId,
      rootKeyId: rootKeyId ?? undefined,
      endpoint: pathOfEndpoint(endpoint),
      isOperator: false,
      scopes: null,
      memberships: readMemberships(roles),
      limits,
      loginsEpoch,
    };
    return { caller, expiresAt: expiresAt.getTime() };
  }

  private forget(grantId: string): void {
    this.revocationRegistry.closeAllOf(grantId);
    this.cachedTokens.dropWhere(({ caller }) => caller.keyId === grantId);
    this.used.delete(grantId);
  }
}

function endpointOf({ url = '' }: IncomingMessage): McpEndpoint | null {
  const mark = url.indexOf('?');
  return mcpEndpointAt(mark < 0 ? url : url.slice(0, mark));
}
