import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { SessionCaller } from '../auth/access.types.js';
import { AccessService } from '../auth/access.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';

/** API keys as the forms of pages make and end them: of a person, and of its organizations. */
@Injectable()
export class OwnKeysService {
  constructor(
    private readonly apiKeysService: ApiKeysService,
    private readonly accessService: AccessService,
  ) {}

  /** The keys of a person, and the namespaces that one may be limited to. */
  async list(person: SessionCaller) {
    const accounts = this.accessService.accountsWith(person, 'read');
    const [{ apiKeys }, ...names] = await Promise.all([
      this.apiKeysService.list(person.accountId),
      ...accounts.map((accountId) => this.accessService.namespacesOf(accountId)),
    ]);
    return { apiKeys, namespaces: names.flat().slice(0, 100) };
  }

  /**
   * Replaces the key that the field `id` names. The new one has its rights, and ends when it would have.
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

  /** Revokes the key that the field `id` names. @throws as ApiKeysService */
  async revoke(person: SessionCaller, form: URLSearchParams): Promise<void> {
    await this.apiKeysService.revoke(person, person.accountId, keyIn(form), {});
  }

  /** Makes a key of an account by the fields `name`, `days` and each `scope`, which is `all` for all rights. @throws as ApiKeysService */
  async make(person: SessionCaller, accountId: string, form: URLSearchParams): Promise<{ name: string; key: string }> {
    const text = (name: string) => form.get(name) ?? '';
    const [name, days, scopes] = [text('name').trim(), Number(text('days')), form.getAll('scope')];
    if (!/^[^\p{Cc}\p{Cs}]{1,255}$/u.test(name)) throw new InvalidInputError('name must have 1 to 255 characters');
    if (!(days >= 1 && days <= 3_650)) throw new InvalidInputError('days must be a number from 1 to 3650');
    if (scopes.length === 0 || scopes.length > 100) {
      throw new InvalidInputError('Select 1 to 100 permissions for the key').atField('scope');
    }
    const expiresAt = new Date(Date.now() + days * 86_400_000).toISOString();
    const rights = scopes.includes('all') ? {} : { scopes };
    const { key } = await this.apiKeysService.create(person, accountId, { name, expiresAt, ...rights });
    return { name, key };
  }
}

function keyIn(form: URLSearchParams): string {
  const id = form.get('id');
  if (id === null || !isUUID(id)) throw new NotFoundError('API key not found');
  return id;
}
