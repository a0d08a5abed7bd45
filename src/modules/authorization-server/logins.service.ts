import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Actor } from '../../platform/database/actor.js';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import { PasswordsService } from '../people/passwords.service.js';
import { SessionsService } from '../people/sessions.service.js';
import { AuthorizationServerRepository, type LoginRow } from './authorization-server.repository.js';
import { placeOf } from './consent-page.js';
import type { LoginDto, LoginListDto } from './login.dto.js';
import { TokensService } from './tokens.service.js';

/** Sign-ins of an account besides its API keys: browser sessions, the password, client authorizations. */
@Injectable()
export class LoginsService {
  constructor(
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
    private readonly sessionsService: SessionsService,
    private readonly passwordsService: PasswordsService,
  ) {}

  async list(accountId: string, query: PageQueryDto): Promise<LoginListDto> {
    const rows = await this.authorizationServerRepository.loginsOf(accountId);
    const { offset, pagination } = pageOf(query, rows.length);
    const page = offset === null ? [] : rows.slice(offset, offset + pagination.pageSize);
    return { logins: page.map(toLoginDto), pagination };
  }

  /**
   * Revokes a login. The revocation takes effect within 5 s in every process. Revoking the password also revokes all sessions and client authorizations.
   *
   * @throws NotFoundError
   */
  async revoke(actor: Actor, accountId: string, id: string): Promise<void> {
    const isEnded =
      id === 'password'
        ? await this.passwordsService.remove(actor, accountId)
        : isUUID(id) &&
          ((await this.sessionsService.endById(actor, id, accountId)) || (await this.endGrant(actor, id, accountId)));
    if (!isEnded) throw new NotFoundError('Login not found');
  }

  /** Revokes all sign-ins of an account. Its API keys stay. */
  async endAll(actor: Actor, accountId: string): Promise<void> {
    await this.passwordsService.remove(actor, accountId, true);
    this.tokensService.announceRevocation(await this.authorizationServerRepository.deleteGrantsOf(actor, accountId));
  }

  private async endGrant(actor: Actor, id: string, accountId: string): Promise<boolean> {
    if (!(await this.authorizationServerRepository.deleteOwnGrant(actor, id, accountId))) return false;
    this.tokensService.announceRevocation([id]);
    return true;
  }
}

function toLoginDto(row: LoginRow): LoginDto {
  const { id, kind, name, redirectKey, resource, address, keyId, createdAt, lastUsedAt, expiresAt } = row;
  return {
    id,
    kind,
    name,
    host: redirectKey === null ? null : placeOf(redirectKey),
    resource,
    address,
    keyId,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
  };
}
