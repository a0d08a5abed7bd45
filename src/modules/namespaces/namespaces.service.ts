/**
 * The first account to claim a name gets it; claiming one's own changes nothing. Deletion includes skills and connections, and the module
 * that has them revokes their tokens (`NamespaceDeletion`). Servers prevent the deletion, by a foreign key, including one created
 * concurrently.
 *
 * Fails: 409 "already exists" for the name of another account (published tools look for these words), 409 while servers exist, 400 for
 * malformed and reserved names, and the quota of the account.
 */
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository, type EntityManager } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { generateName } from '../../platform/http/generated-name.js';
import { NAMESPACE_NAME, RESERVED_NAMESPACES } from '../../platform/http/resource-names.js';
import { readPage } from '../../platform/http/pagination.dto.js';
import { project } from '../../platform/http/input-values.js';
import { partOf } from '../../platform/parts.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ConflictError, ForbiddenError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import {
  type DeletedNamespaceDto,
  type NamespaceDto,
  type NamespaceListDto,
  type NamespaceQueryDto,
  type TransferredAccountDto,
  toNamespaceDto,
} from './namespace.dto.js';
import { Namespace } from './namespace.entity.js';
import { toSuspension } from '../auth/suspension.types.js';
import { TargetsService } from '../targets/targets.service.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { NamespaceNotFoundError, NamespaceOwnedError } from './namespaces.errors.js';
import { NamespacesRepository } from './namespaces.repository.js';

const RENAME = 'choose another name, or let POST /namespaces generate one';

/** The deletion of namespaces, which the module of connections provides. */
export abstract class NamespaceDeletion {
  /** Prepares a deletion. The returned function runs after the deletion succeeded. */
  abstract prepareDeletion(namespace: OwnedNamespace): Promise<() => void>;
  /** Runs in the transaction that moves namespaces to another account: revokes client authorizations, setup links and consents. */
  abstract endLogins(namespaceIds: string[], tx: EntityManager): Promise<void>;
  abstract revokeTokens(namespaceIds: string[]): Promise<void>;
}

@Injectable()
export class NamespacesService implements OnModuleInit, OnApplicationBootstrap {
  private readonly logger = new Logger('namespaces');
  private deletion!: NamespaceDeletion;

  constructor(
    @InjectRepository(Namespace) private readonly namespaceRepository: Repository<Namespace>,
    private readonly namespacesRepository: NamespacesRepository,
    private readonly targetsService: TargetsService,
    private readonly accessService: AccessService,
    private readonly pubSub: PubSub,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    this.deletion = partOf(this.moduleRef, NamespaceDeletion);
  }

  /** Warns of namespaces whose short form `/{namespace}` is the path of a route that was added later. */
  async onApplicationBootstrap(): Promise<void> {
    const hidden = await this.namespaceRepository.findBy({ name: In([...RESERVED_NAMESPACES]) });
    for (const { name } of hidden) {
      this.logger.warn(`A route begins with /${name}: reach the namespace "${name}" under /connect/${name} only`);
    }
  }

  /** Lists namespaces of the caller and its organizations, newest first; with a search filter those of all accounts, by name. */
  async list(caller: Caller, query: NamespaceQueryDto): Promise<NamespaceListDto> {
    const { q, ownerId, hasServers, hasSkills } = query;
    const isSearch = [q, ownerId, hasServers, hasSkills].some((filter) => filter !== undefined);
    const ownFilter = isSearch ? {} : { accountIds: this.accessService.accountsWith(caller, 'discover') };
    const filter = { prefix: q, ownerId, hasServers, hasSkills, viewer: caller, ...ownFilter };
    const order = isSearch ? 'name' : 'newest';
    const { rows, pagination } = await readPage(query, this.namespacesRepository.count(filter), (page) =>
      this.namespacesRepository.find(filter, { order, ...page }),
    );
    return { namespaces: rows.map((row) => project(toNamespaceDto(row), query.fields)), pagination };
  }

  /** @throws KeyScopeError */
  async create(caller: Caller): Promise<NamespaceDto> {
    this.accessService.requireForAll(caller, 'manage');
    for (;;) {
      const created = await this.insert(caller, generateName(4), caller.accountId);
      if (created) return created;
    }
  }

  /**
   * Claims a namespace. Nothing changes if the caller or its organization already owns the name.
   *
   * @param organizationId the account that gets it; by default the caller's own
   * @param moves moves a namespace that the caller owns in another account
   * @throws InvalidInputError, KeyScopeError, QuotaExceededError; ConflictError when another account has it; ForbiddenError for an
   * organization where the caller is neither owner nor editor; as {@link moveOne}
   */
  async claim(name: string, caller: Caller, organizationId?: string, moves = false): Promise<NamespaceDto> {
    if (!NAMESPACE_NAME.test(name)) {
      throw new InvalidInputError(
        'name must be 3 to 39 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
      );
    }
    if (RESERVED_NAMESPACES.has(name)) throw new InvalidInputError(`"${name}" is reserved: choose another name`);
    for (;;) {
      const row = await this.namespaceRepository.findOneBy({ name });
      if (row && this.accessService.isAllowed(caller, 'manage', { ownerId: row.accountId, namespace: name })) {
        const to = organizationId ?? row.accountId;
        // eslint-disable-next-line no-restricted-syntax -- A question of ownership, not of access.
        const isOther = to !== row.accountId && this.accessService.owns(caller, 'administer', to);
        if (isOther && moves) await this.moveOne(caller, name, to);
        else if (isOther) throw new NamespaceOwnedError(name, to);
        return toNamespaceDto(row);
      }
      // Published tools look for the words "already exists".
      if (row)
        throw new ConflictError(`The namespace "${name}" already exists and belongs to another account: ${RENAME}`);
      this.accessService.requireForAll(caller, 'manage');
      const accountId = organizationId ?? caller.accountId;
      if (!this.accessService.owns(caller, 'administer', accountId)) {
        throw new ForbiddenError('Forbidden: organizationId must be an organization where you are an owner or editor');
      }
      // The row is null when the name was claimed concurrently, and is then read.
      const created = await this.insert(caller, name, accountId);
      if (created) return created;
    }
  }

  /** @throws ConflictError while the namespace holds servers */
  async remove(actor: Actor, namespace: OwnedNamespace): Promise<DeletedNamespaceDto> {
    const { id, name } = namespace;
    const finish = await this.deletion.prepareDeletion(namespace);
    const refusal = () => new ConflictError(`The namespace "${name}" still holds servers: delete them first`);
    await transactionOf(this.namespaceRepository, actor, (tx) => tx.delete(Namespace, { id })).catch(
      onViolation({ foreignKey: refusal }),
    );
    finish();
    this.pubSub.announce('namespaces.deleted', { id, name });
    return { success: true, name };
  }

  /**
   * Suspends a namespace, or reinstates it if the reason is null. The change takes effect immediately in this process, within 5 s in every other.
   *
   * @throws NamespaceNotFoundError
   */
  async suspend(name: string, caller: Caller, reason: string | null): Promise<SuccessDto> {
    const isName = NAMESPACE_NAME.test(name);
    if (!isName || !(await this.namespacesRepository.suspend(caller, name, toSuspension(reason, caller))))
      throw new NamespaceNotFoundError();
    this.pubSub.announce('namespaces.suspended', { name });
    return { success: true };
  }

  /**
   * Streams close, and setup links, consents and upstream credentials are revoked: they belong to the people who created them.
   *
   * @param name one namespace of the account; null: all
   * @throws ForbiddenError for an account that the caller does not own, NotFoundError, QuotaExceededError of the new account
   */
  async move(caller: Caller, from: string, to: string, name: string | null): Promise<TransferredAccountDto> {
    if (!caller.isOperator && !this.accessService.owns(caller, 'own', to)) {
      throw new ForbiddenError(
        'Forbidden: the new account must be your own, or an organization that you are an owner of',
      );
    }
    const added = {
      namespaces: 0,
      servers: 0,
      connections: 0,
      skills: 0,
      skillBytes: 0,
      releases: 0,
      artifactBytes: 0,
    };
    const moved = await this.namespacesRepository.move(caller, { from, to, name }, async (tx, namespaces) => {
      await this.deletion.endLogins(idsOf(namespaces), tx);
      await this.accountLimitsService.require({ accountId: to }, added, tx);
    });
    if (!moved) throw new NotFoundError('No account that is in use has this id');
    for (const { id, name: movedName } of moved) {
      this.pubSub.announce('namespaces.deleted', { id, name: movedName });
      this.pubSub.announce('namespaces.suspended', { name: movedName });
    }
    await this.deletion.revokeTokens(idsOf(moved));
    const grants = await this.namespacesRepository.countGrants(idsOf(moved));
    return { success: true, namespaces: moved.map(({ name: movedName }) => movedName).sort(), grants };
  }

  /** Works like {@link move} for one namespace. @throws NamespaceNotFoundError when it was deleted meanwhile */
  async moveOne(caller: Caller, name: string, to: string): Promise<TransferredAccountDto> {
    const row = await this.namespaceRepository.findOneBy({ name });
    if (!row || !this.accessService.isAllowed(caller, 'own', { ownerId: row.accountId, namespace: name })) {
      throw new NamespaceNotFoundError();
    }
    return this.move(caller, row.accountId, to, name);
  }

  private async insert(actor: Actor, name: string, accountId: string): Promise<NamespaceDto | null> {
    const insert = () => this.namespacesRepository.insertIfFree(actor, name, accountId);
    const row = await this.accountLimitsService.createWithinQuota({ accountId }, { namespaces: 1 }, insert);
    // The cache might still hold a previous owner.
    this.targetsService.forget(name);
    return row && toNamespaceDto(row);
  }
}

const idsOf = (namespaces: OwnedNamespace[]) => namespaces.map(({ id }) => id);
