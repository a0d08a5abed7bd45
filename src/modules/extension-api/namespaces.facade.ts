import { Injectable } from '@nestjs/common';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import type { NamespaceDto, NamespaceListDto, NamespaceQueryDto } from '../namespaces/namespace.dto.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';

/**
 * Namespaces and their owners.
 *
 * @stability preview
 * @example
 * // Gives an organization a namespace for each of its environments.
 * export class EnvironmentsService {
 *   constructor(private readonly namespaces: Namespaces) {}
 *
 *   async prepare(caller: Caller, organizationId: string): Promise<void> {
 *     for (const name of ['acme-test', 'acme-live']) await this.namespaces.claim(caller, name, { organizationId });
 *   }
 * }
 */
export abstract class Namespaces {
  /** Returns what `GET /namespaces` returns: the namespaces of the caller and its organizations, or those that a filter finds. */
  abstract list(caller: Caller, query?: NamespaceQueryDto): Promise<NamespaceListDto>;

  /**
   * Claims a name for the caller or an organization. With `move`, a namespace of the caller moves there: its streams
   * close, and the stored authorizations of its connections are revoked.
   *
   * @throws ConflictError for a name of another account; InvalidInputError; QuotaExceededError; ForbiddenError for an
   *   organization where the caller is neither owner nor editor
   */
  abstract claim(
    caller: Caller,
    name: string,
    options?: { organizationId?: string; move?: boolean },
  ): Promise<NamespaceDto>;
}

@Injectable()
export class ServiceNamespaces implements Namespaces {
  constructor(
    private readonly accessService: AccessService,
    private readonly namespacesService: NamespacesService,
  ) {}

  readonly list: Namespaces['list'] = async (caller, query = {}) => {
    await this.accessService.authorize(caller, { scope: 'namespaces:read' }, {});
    return this.namespacesService.list(caller, query);
  };

  readonly claim: Namespaces['claim'] = async (caller, name, { organizationId, move } = {}) => {
    await this.accessService.authorize(caller, { scope: 'namespaces:write' }, {});
    return this.namespacesService.claim(name, caller, organizationId, move);
  };
}
