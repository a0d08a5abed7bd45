import { Injectable } from '@nestjs/common';
import { ConflictError, InvalidInputError } from '../../platform/errors/domain-error.js';
import { AccessService } from '../auth/access.service.js';
import type { SessionCaller } from '../auth/access.types.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';
import { TargetsService } from '../targets/targets.service.js';

/** The namespaces of a user, the first of which is created when it is needed. */
@Injectable()
export class OwnNamespacesService {
  constructor(
    private readonly namespacesService: NamespacesService,
    private readonly targetsService: TargetsService,
    private readonly accessService: AccessService,
  ) {}

  namesOf({ accountId }: SessionCaller): Promise<string[]> {
    return this.targetsService.namespacesOf([accountId]);
  }

  /** Returns names of the namespaces where the user can add connections, newest first, including those of its organizations. */
  usableBy(person: SessionCaller): Promise<string[]> {
    return this.targetsService.namespacesOf(this.accessService.accountsWith(person, 'manage'));
  }

  /** Derives a name from that of the account; the name might be taken. */
  proposalFor({ accountName }: SessionCaller): string {
    const name = accountName.toLowerCase().replace(/[^a-z0-9]+/g, '-');
    return name.slice(0, 39).replace(/^-|-$/g, '');
  }

  /**
   * Returns the oldest namespace, or creates one.
   *
   * @param name of the new namespace; '' for that of the account if it is free
   * @throws ConflictError, InvalidInputError for the name
   */
  async first(person: SessionCaller, name = ''): Promise<string> {
    const owned = (await this.namesOf(person)).at(-1);
    if (owned !== undefined) return owned;
    try {
      return (await this.namespacesService.claim(name || this.proposalFor(person), person)).name;
    } catch (error) {
      if (!(error instanceof ConflictError || error instanceof InvalidInputError)) throw error;
      if (name !== '') throw error.atField('namespace');
      return (await this.namespacesService.create(person)).name;
    }
  }
}
