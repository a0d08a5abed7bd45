import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import type { SessionCaller } from '../auth/access.types.js';
import { AccessService } from '../auth/access.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { newKeyOf } from './new-key.page.js';

@Injectable()
export class OwnKeysService {
  constructor(
    private readonly apiKeysService: ApiKeysService,
    private readonly accessService: AccessService,
  ) {}

  /** Lists the keys, and the namespaces to which a key can be limited. */
  async list(person: SessionCaller) {
    const accounts = this.accessService.accountsWith(person, 'read');
    const [{ apiKeys }, ...names] = await Promise.all([
      this.apiKeysService.list(person.accountId),
      ...accounts.map((accountId) => this.accessService.namespacesOf(accountId)),
    ]);
    return { apiKeys, namespaces: names.flat().slice(0, 100) };
  }

  /**
   * Rotates the key in the field `id`; the new key has the same rights and expiry.
   *
   * @throws as ApiKeysService
   */
  async rotate(person: SessionCaller, form: URLSearchParams): Promise<{ name: string; key: string }> {
    const id = keyIn(form);
    const { apiKeys } = await this.apiKeysService.list(person.accountId);
    const expiresAt = apiKeys.find((key) => key.id === id)?.expiresAt ?? undefined;
    const { name, key } = await this.apiKeysService.rotate(person, person.accountId, id, { expiresAt });
    return { name, key };
  }

  /** Revokes the key in the field `id`. @throws as ApiKeysService */
  async revoke(person: SessionCaller, form: URLSearchParams): Promise<void> {
    await this.apiKeysService.revoke(person, person.accountId, keyIn(form), {});
  }

  /** @throws InvalidInputError for a wrong field; as ApiKeysService */
  async make(person: SessionCaller, form: URLSearchParams): Promise<{ name: string; key: string }> {
    const { name, key } = await this.apiKeysService.create(person, person.accountId, newKeyOf(form));
    return { name, key };
  }
}

function keyIn(form: URLSearchParams): string {
  const id = form.get('id');
  if (id === null || !isUUID(id)) throw new NotFoundError('API key not found');
  return id;
}
