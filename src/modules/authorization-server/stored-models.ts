/**
 * Adapter of oidc-provider to Postgres. Every model but two is a row of `as_records`: its payload encrypted, its id as SHA-256, since the
 * id of a token is the token. `Client` is a row of `as_clients`; `Grant` is built from a row of `as_grants`, which the consent page writes.
 *
 * A used refresh token stays valid until its successor was used, and 60 s longer, since its response might have been lost. Using it later
 * is a replay and revokes the authorization, even when its row was deleted.
 */
import type { Logger } from '@nestjs/common';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { hashSecret } from '../../platform/http/secrets.js';
import type { Vault } from '../../platform/vault/vault.js';
import type { AuthorizationServerRepository } from './authorization-server.repository.js';
import { MCP_SCOPE } from './authorization-server.types.js';
import type { RefreshTokens } from './refresh-tokens.js';

export interface ModelStore {
  rows: AuthorizationServerRepository;
  vault: Vault;
  logger: Logger;
  /** The lifetime in seconds after each refresh. */
  grantSeconds: number;
  refreshTokens: RefreshTokens;
  /** Returns the limit key of the requester's address; empty for a proxy that does not name the client. */
  asker: () => string;
  /** The refresh token of the current request, or null. */
  used: () => string | null;
  endGrant: (id: string) => Promise<void>;
  invalidGrant: (words: string) => Error;
  usedAssertion: () => Error;
  tooManyClients: () => Error;
}

const REPLAY = 'a refresh token was used again after its successor: the login of this client ends';

export function adapterOf(name: string, store: ModelStore): Adapter {
  if (name === 'Session') return new NoSessions();
  if (name === 'Client') return new StoredClients(store);
  return name === 'Grant' ? new StoredGrants(store) : new StoredRecords(name, store);
}

/** Adapter of models that have no other ids and are never destroyed on their own: deleting an authorization deletes its rows. */
abstract class SimpleAdapter implements Adapter {
  abstract find(id: string): Promise<AdapterPayload | undefined>;

  async upsert(_id: string, _payload: AdapterPayload, _expiresIn: number): Promise<void> {}
  async destroy(_id: string): Promise<void> {}
  async consume(_id: string): Promise<void> {}
  async revokeByGrantId(_grantId: string): Promise<void> {}
  async findByUid(_uid: string): Promise<undefined> {}
  async findByUserCode(_code: string): Promise<undefined> {}
}

class NoSessions extends SimpleAdapter {
  async find(): Promise<undefined> {}
}

class StoredRecords extends SimpleAdapter {
  constructor(
    private readonly kind: string,
    private readonly store: ModelStore,
  ) {
    super();
  }

  override async upsert(id: string, { jti: _id, ...payload }: AdapterPayload, lifeSeconds: number): Promise<void> {
    const { rows, vault, grantSeconds, asker, used, invalidGrant, usedAssertion } = this.store;
    const hash = hashSecret(id);
    const { grantId = null, params } = payload;
    const sealed = vault.seal(JSON.stringify(payload), this.owner(hash));
    if (this.kind === 'Interaction') {
      const clientId = String((params as Record<string, unknown>).client_id);
      return rows.saveInteraction(hash, { address: asker(), clientId, sealed, lifeSeconds });
    }
    const presented = used();
    const predecessor = this.kind === 'RefreshToken' && presented !== null ? hashSecret(presented) : null;
    try {
      const isSaved = await rows.saveRecord(this.kind, hash, { grantId, predecessor, sealed, lifeSeconds });
      if (!isSaved) throw usedAssertion();
    } catch (error) {
      // The authorization was revoked since it was read, for example by another use of the same code.
      throw isForeignKeyViolation(error) ? invalidGrant('the login has ended') : error;
    }
    if (this.kind === 'RefreshToken' && grantId !== null) {
      await rows.extendGrant(grantId, grantSeconds);
      // Redeeming a code counts as a use, before the first call is recorded.
      if (presented === null) await rows.saveLastUses([grantId], [new Date()]);
    }
    // The library stores the access token of a refresh last.
    if (this.kind === 'AccessToken' && grantId && presented !== null) await rows.dropOlderRecords(grantId);
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const { rows, vault, logger, refreshTokens, endGrant } = this.store;
    const hash = hashSecret(id);
    const record = await rows.findRecord(this.kind, hash);
    if (!record) {
      const grant = this.kind === 'RefreshToken' ? refreshTokens.grantOf(id) : null;
      if (grant !== null && (await rows.isLongReplaced(grant))) {
        logger.warn({ grant, msg: REPLAY });
        await endGrant(grant);
      }
      return undefined;
    }
    const payload = JSON.parse(vault.open(record.sealed, this.owner(hash))) as AdapterPayload;
    // The row names the authorization: a migration gave each login its own, and the payload might still name another.
    const grant = record.grantId === null ? {} : { grantId: record.grantId };
    const model = { ...payload, ...grant, jti: id };
    const isUsed = this.kind === 'RefreshToken' ? record.isReplaced : record.consumedAt !== null;
    if (!isUsed) return model;
    if (this.kind === 'RefreshToken') {
      logger.warn({ grant: record.grantId, client: payload.clientId, msg: REPLAY });
    }
    // Any number but 0 reports it to the library.
    return { ...model, consumed: 1 };
  }

  override async destroy(id: string): Promise<void> {
    await this.store.rows.deleteRecord(this.kind, hashSecret(id));
  }

  override async consume(id: string): Promise<void> {
    const isFirst = await this.store.rows.consume(this.kind, hashSecret(id));
    if (!isFirst && this.kind === 'AuthorizationCode')
      throw this.store.invalidGrant('authorization code already consumed');
  }

  private owner(hash: Buffer): string {
    return `${this.kind} ${hash.toString('hex')}`;
  }
}

class StoredClients extends SimpleAdapter {
  constructor(private readonly store: ModelStore) {
    super();
  }

  override async upsert(id: string, payload: AdapterPayload): Promise<void> {
    const { rows, vault, asker, tooManyClients } = this.store;
    if (!(await rows.saveClient(id, vault.seal(JSON.stringify(payload), id), asker()))) throw tooManyClients();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const sealed = await this.store.rows.findClient(id);
    return sealed === null ? undefined : (JSON.parse(this.store.vault.open(sealed, id)) as AdapterPayload);
  }
}

class StoredGrants extends SimpleAdapter {
  constructor(private readonly store: ModelStore) {
    super();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const grant = await this.store.rows.findGrant(id);
    if (!grant) return undefined;
    const { accountId, clientId, resource } = grant;
    const exp = Math.floor(Date.now() / 1_000) + this.store.grantSeconds;
    return {
      jti: id,
      kind: 'Grant',
      accountId,
      clientId,
      exp,
      openid: { scope: 'offline_access' },
      resources: { [resource]: MCP_SCOPE },
    };
  }

  override destroy(id: string): Promise<void> {
    return this.store.endGrant(id);
  }
}
