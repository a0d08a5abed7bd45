import type { PipeTransform } from '@nestjs/common';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME, SERVER_NAME, SERVER_SUBRESOURCES } from '../../platform/http/resource-names.js';
import { ServerNotFoundError } from './servers.errors.js';

/** The namespace and name of a server. */
export interface QualifiedName {
  namespace: string;
  /** Empty for a namespace-only server. */
  name: string;
}

/** `namespace/name`, or `namespace` alone. */
export function formatQualifiedName({ namespace, name }: QualifiedName): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}

/** The parts of a decoded, canonical qualified name. */
export function parseQualifiedName(text: string): QualifiedName {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace: text, name: '' } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** @throws InvalidInputError for a malformed or reserved name */
export function requireServerName(name: string): void {
  if (name === '') return;
  if (!SERVER_NAME.test(name)) {
    throw new InvalidInputError(
      'server must be 3 to 39 letters, digits, hyphens and underscores, and begin with a letter or digit',
    );
  }
  if (SERVER_SUBRESOURCES.has(name)) throw new InvalidInputError(`"${name}" is reserved: choose another server name`);
}

/** Parses `:qualifiedName`; a malformed name is a server not found. */
export class QualifiedNamePipe implements PipeTransform<string, QualifiedName> {
  transform(text: string): QualifiedName {
    const parsed = parseQualifiedName(text);
    const { namespace, name } = parsed;
    if (!NAMESPACE_NAME.test(namespace) || (name !== '' && !SERVER_NAME.test(name))) throw new ServerNotFoundError();
    return parsed;
  }
}
