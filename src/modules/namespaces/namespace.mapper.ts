import type { NamespaceDto } from './namespace.dto.js';
import type { Namespace } from './namespace.entity.js';

export function toNamespaceDto({ name, createdAt }: Pick<Namespace, 'name' | 'createdAt'>): NamespaceDto {
  return { name, createdAt: createdAt.toISOString() };
}
