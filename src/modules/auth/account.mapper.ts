import type { AccountDto, ApiKeyDto, CreatedApiKeyDto } from './account.dto.js';
import type { Account } from './account.entity.js';
import type { ApiKey } from './api-key.entity.js';

export function toAccountDto(account: Account): AccountDto {
  return {
    id: account.id,
    name: account.name,
    kind: account.kind,
    isOperator: account.isOperator,
    createdAt: account.createdAt.toISOString(),
  };
}

export function toApiKeyDto(row: ApiKey): ApiKeyDto {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    createdAt: row.createdAt.toISOString(),
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
  };
}

export function toCreatedApiKeyDto(row: ApiKey, key: string): CreatedApiKeyDto {
  return { ...toApiKeyDto(row), key };
}
