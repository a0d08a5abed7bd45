/**
 * Adapter of oidc-provider to Postgres. Every model but two is a row of `as_records`: its payload sealed, its id as SHA-256, since
 * the id of a token is the token. `Client` is a row of `as_clients`. `Grant` is made of a row of `as_grants`, which the consent page
 * writes. Sessions of the library are not stored: who is signed in is asked of our own session at each authorization.
 *
 * Refresh tokens (rule of the lost answer): a used one stays good until a later one of its family was used, and 60 s more. After
 * that its use is a replay, which ends the grant. Where one token was used twice, the use of one successor ends the other.
 */
import type { Logger } from '@nestjs/common';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { hashSecret } from '../../platform/http/secrets.js';
import type { Vault } from '../../platform/vault/vault.js';
import type { AuthorizationServerRepository } from './authorization-server.repository.js';
import { MCP_SCOPE } from './authorization-server.types.js';

/** What the adapter of a model needs. */
export interface ModelStore {
  rows: AuthorizationServerRepository;
  vault: Vault;
  logger: Logger;
  /** Seconds for which a grant lives after each refresh. */
  grantSeconds: number;
  /** The client address of the running request, for registrations. */
  address: () => string | null;
  /** Ends a grant in all processes. */
  endGrant: (id: string) => Promise<void>;
  /** The error `invalid_grant` of the token endpoint. */
  invalidGrant: (words: string) => Error;
}

/** The adapter of one model. @param name the name of the model, such as `RefreshToken` */
export function adapterOf(name: string, store: ModelStore): Adapter {
  if (name === 'Session') return new NoSessions();
  if (name === 'Client') return new StoredClients(store);
  return name === 'Grant' ? new StoredGrants(store) : new StoredRecords(name, store);
}

/** Models that are neither found by other ids nor ended by themselves. */
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

  override async upsert(id: string, { jti: _id, ...payload }: AdapterPayload, expiresIn: number): Promise<void> {
    const { rows, vault, grantSeconds } = this.store;
    const hash = hashSecret(id);
    const { grantId = null } = payload;
    const { rotations: rotation = 0, sessionUid: family = null } = payload as {
      rotations?: number;
      sessionUid?: string;
    };
    const sealed = vault.seal(JSON.stringify(payload), this.owner(hash));
    try {
      await rows.saveRecord(this.kind, hash, { grantId, family, rotation, sealed, lifeSeconds: expiresIn });
    } catch (error) {
      // The grant was ended since it was read, such as by another use of the same code.
      throw isForeignKeyViolation(error) ? this.store.invalidGrant('the login has ended') : error;
    }
    if (this.kind === 'RefreshToken' && grantId !== null) await rows.extendGrant(grantId, grantSeconds);
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const hash = hashSecret(id);
    const record = await this.store.rows.findRecord(this.kind, hash);
    if (!record) return undefined;
    const payload = JSON.parse(this.store.vault.open(record.sealed, this.owner(hash))) as AdapterPayload;
    const consumed = record.consumedAt ? { consumed: Math.floor(record.consumedAt.getTime() / 1_000) } : {};
    if (this.kind !== 'RefreshToken') return { ...payload, jti: id, ...consumed };
    if (!record.isReplaced) return { ...payload, jti: id };
    const details = { grant: record.grantId, client: payload.clientId };
    if (!record.consumedAt) {
      this.store.logger.warn({
        ...details,
        msg: 'a refresh token was refused: another one of the same origin was used since',
      });
      return undefined;
    }
    this.store.logger.warn({
      ...details,
      msg: 'a refresh token was used again after its successor: the login of this client ends',
    });
    return { ...payload, jti: id, ...consumed };
  }

  override async destroy(id: string): Promise<void> {
    await this.store.rows.deleteRecord(this.kind, hashSecret(id));
  }

  override async consume(id: string): Promise<void> {
    const isFirst = await this.store.rows.consume(this.kind, hashSecret(id));
    if (!isFirst && this.kind === 'AuthorizationCode')
      throw this.store.invalidGrant('authorization code already consumed');
  }

  /** oidc-provider ends each kind of a grant by itself, and the grant last. */
  override async revokeByGrantId(grantId: string): Promise<void> {
    await this.store.rows.deleteRecordsOf(this.kind, grantId);
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
    const { rows, vault, address } = this.store;
    await rows.saveClient(id, vault.seal(JSON.stringify(payload), id), address());
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
