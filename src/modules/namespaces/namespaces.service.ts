/**
 * Namespaces: names that an account owns, and that hold its servers, skills and connections. Claims, lists and deletes
 * them, and finds their owners for the access guard.
 *
 * A name is claimed by whoever is first (`PUT /namespaces/{name}`); claiming one's own changes nothing. Owners are
 * cached for 5 s, and `namespaces.deleted` drops them in every process. Deletion takes skills and connections along;
 * other modules add steps to it (`beforeDeletion`), such as the revocation of tokens. Servers prevent it, by a foreign
 * key, also one created at the same moment.
 *
 * Fails: 409 "already exists" for the name of another account (published tools look for these words), 409 while servers
 * exist, 400 for malformed and reserved names, and the quota of the account.
 */
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { generateName } from '../../platform/http/generated-name.js';
import { NAMESPACE_NAME, RESERVED_NAMESPACES } from '../../platform/http/resource-names.js';
import { pageOf } from '../../platform/http/pagination.dto.js';
import { project } from '../../platform/http/input-values.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller, NamespaceOwners, OwnedNamespace } from '../auth/access.types.js';
import { InvalidInputError, ConflictError } from '../../platform/errors/domain-error.js';
import {
  type DeletedNamespaceDto,
  type NamespaceDto,
  type NamespaceListDto,
  type NamespaceQueryDto,
  toNamespaceDto,
} from './namespace.dto.js';
import { Namespace } from './namespace.entity.js';
import { NamespacesRepository } from './namespaces.repository.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when a namespace was deleted. */
    'namespaces.deleted': { id: string; name: string };
  }
}

/** Runs before a namespace is deleted. The returned function runs after the deletion, if it succeeds. */
export type NamespaceDeletion = (namespace: OwnedNamespace) => Promise<() => void>;

/** Claims, lists and deletes namespaces, and finds their owners. */
@Injectable()
export class NamespacesService implements NamespaceOwners, OnModuleInit, OnApplicationBootstrap {
  private readonly logger = new Logger('namespaces');
  private readonly owners = new RowCache<{ id: string; accountId: string }>((name) => this.rows.findOwner(name));

  private readonly deletions: NamespaceDeletion[] = [];

  constructor(
    @InjectRepository(Namespace) private readonly namespaces: Repository<Namespace>,
    private readonly rows: NamespacesRepository,
    private readonly access: AccessService,
    private readonly pubSub: PubSub,
    private readonly limits: AccountLimitsService,
  ) {}

  async onModuleInit(): Promise<void> {
    this.access.useNamespaceOwners(this);
    await this.pubSub.subscribe('namespaces.deleted', ({ name }) => this.owners.drop(name));
  }

  /** Warns of namespaces whose short form `/{namespace}` is the path of a route that was added later. */
  async onApplicationBootstrap(): Promise<void> {
    const hidden = await this.namespaces.findBy({ name: In([...RESERVED_NAMESPACES]) });
    for (const { name } of hidden) {
      this.logger.warn(`A route begins with /${name}: reach the namespace "${name}" under /connect/${name} only`);
    }
  }

  /** The id and owner of a namespace that was read within the last 5 s; otherwise null. */
  peek(name: string): { id: string; accountId: string } | null {
    return this.owners.peek(name);
  }

  /** The id and owner of a namespace, at most 5 s old; null when there is none. */
  async find(name: string): Promise<{ id: string; accountId: string } | null> {
    if (!NAMESPACE_NAME.test(name)) return null;
    return this.owners.get(name);
  }

  async namesOf(accountId: string): Promise<string[]> {
    const rows = await this.namespaces.find({
      where: { accountId },
      select: { name: true },
      order: { createdAt: 'DESC' },
    });
    return rows.map(({ name }) => name);
  }

  /** The caller's namespaces, newest first; with a search filter those of everybody, by name. */
  async list(caller: Caller, query: NamespaceQueryDto): Promise<NamespaceListDto> {
    const { q, ownerId, hasServers, hasSkills } = query;
    const isSearch = [q, ownerId, hasServers, hasSkills].some((filter) => filter !== undefined);
    const own = isSearch ? {} : { accountId: caller.accountId };
    const filter = { prefix: q, ownerId, hasServers, hasSkills, viewer: caller, ...own };
    const { offset, pagination } = pageOf(query, await this.rows.count(filter));
    if (offset === null) return { namespaces: [], pagination };
    const order = isSearch ? 'name' : 'newest';
    const rows = await this.rows.find(filter, { order, offset, limit: pagination.pageSize });
    return { namespaces: rows.map((row) => project(toNamespaceDto(row), query.fields)), pagination };
  }

  /** Creates a namespace with a generated name. @throws KeyScopeError */
  async create(caller: Caller): Promise<NamespaceDto> {
    this.access.requireForAll(caller, 'manage');
    for (;;) {
      const created = await this.insert(generateName(4), caller);
      if (created) return created;
    }
  }

  /**
   * Creates a namespace with this name. Nothing changes if the caller owns it already.
   *
   * @throws InvalidInputError, KeyScopeError, QuotaExceededError, ConflictError when another account has it
   */
  async claim(name: string, caller: Caller): Promise<NamespaceDto> {
    if (!NAMESPACE_NAME.test(name)) {
      throw new InvalidInputError(
        'name must be 3 to 39 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
      );
    }
    if (RESERVED_NAMESPACES.has(name)) throw new InvalidInputError(`"${name}" is reserved: choose another name`);
    for (;;) {
      const row = await this.namespaces.findOneBy({ name });
      if (row && this.access.may(caller, 'manage', { ownerId: row.accountId, namespace: name }))
        return toNamespaceDto(row);
      // Published tools look for the words "already exists".
      if (row) throw new ConflictError(`The namespace "${name}" already exists and belongs to another account`);
      this.access.requireForAll(caller, 'manage');
      // Null when it was claimed in between: read it.
      const created = await this.insert(name, caller);
      if (created) return created;
    }
  }

  /** Adds a step that every deletion awaits, such as the revocation of tokens: see {@link NamespaceDeletion}. */
  beforeDeletion(deletion: NamespaceDeletion): void {
    this.deletions.push(deletion);
  }

  /**
   * Deletes a namespace with its skills and connections. The foreign key of servers refuses it while one exists, also one
   * created at the same moment.
   *
   * @throws ConflictError while it holds servers
   */
  async remove(namespace: OwnedNamespace): Promise<DeletedNamespaceDto> {
    const { id, name } = namespace;
    const finishes: (() => void)[] = [];
    for (const deletion of this.deletions) finishes.push(await deletion(namespace));
    const refusal = () => new ConflictError(`The namespace "${name}" still holds servers: delete them first`);
    await this.namespaces.delete({ id }).catch(onViolation({ foreignKey: refusal }));
    for (const finish of finishes) finish();
    this.owners.drop(name);
    this.pubSub.publish('namespaces.deleted', { id, name });
    return { success: true, name };
  }

  private async insert(name: string, { accountId }: Caller): Promise<NamespaceDto | null> {
    const insert = () => this.rows.insertIfFree(name, accountId);
    const row = await this.limits.within({ accountId }, { namespaces: 1 }, insert);
    // The cache may still hold a previous owner.
    this.owners.drop(name);
    return row && toNamespaceDto(row);
  }
}
