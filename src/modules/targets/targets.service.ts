/**
 * Namespaces, which every request needs, are cached for 5 s; `namespaces.deleted` and `namespaces.suspended` drop them
 * in every process, in the publishing one before it responds.
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { RowCache } from '../../platform/database/row-cache.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { NAMESPACE_NAME } from '../../platform/http/resource-names.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { namespaceNamed, type Target, type TargetName, type TargetRef } from './target.types.js';
import { TargetsRepository } from './targets.repository.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when a namespace was deleted, or moved to another account: its streams and handles close. */
    'namespaces.deleted': { id: string; name: string };
    /** Published when a namespace was suspended or reinstated. */
    'namespaces.suspended': { name: string };
  }
}

/** A target by its names; a server also by the slug of its run endpoint. */
export type TargetAddress = TargetName | { kind: 'server'; slug: string };

@Injectable()
export class TargetsService implements OnModuleInit {
  private readonly namespaces = new RowCache<Target>((name) => this.targetsRepository.findByName(namespaceNamed(name)));

  constructor(
    private readonly targetsRepository: TargetsRepository,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('namespaces.deleted', ({ name }) => this.forget(name));
    await this.pubSub.subscribe('namespaces.suspended', ({ name }) => this.forget(name));
  }

  /** Finds a target; its namespace is at most 5 s old. */
  async find(address: TargetAddress): Promise<Target | null> {
    if ('slug' in address) {
      return STORABLE.test(address.slug) ? this.targetsRepository.findBySlug(address.slug.toLowerCase()) : null;
    }
    const { kind, namespace, name } = address;
    if (!NAMESPACE_NAME.test(namespace) || !STORABLE.test(name)) return null;
    return kind === 'namespace' && name === ''
      ? this.namespaces.get(namespace)
      : this.targetsRepository.findByName(address);
  }

  /** Finds a namespace; the result is at most 5 s old. */
  async findNamespace(name: string): Promise<Target | null> {
    return this.find(namespaceNamed(name));
  }

  findById(target: TargetRef): Promise<Target | null> {
    return this.targetsRepository.findById(target);
  }

  /** Returns the namespace of this name if {@link findNamespace} needs no query; otherwise null. */
  peekNamespace(name: string): Target | null {
    return this.namespaces.peek(name);
  }

  async readNamespaces(names: string[]): Promise<Map<string, Target>> {
    const rows = await this.targetsRepository.findNamespaces(names.filter((name) => NAMESPACE_NAME.test(name)));
    return new Map(rows.map((row) => [row.namespace, row]));
  }

  /** Lists the newest namespaces first. */
  namespacesOf(accountIds: string[]): Promise<string[]> {
    return this.targetsRepository.namesOf(accountIds);
  }

  /** Drops a namespace from the cache, which can hold a previous owner of the name. */
  forget(namespace: string): void {
    this.namespaces.drop(namespace);
  }
}
