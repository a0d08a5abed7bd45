import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME, RESERVED_NAMESPACES } from '../../platform/http/resource-names.js';

/** @throws InvalidInputError when nobody may own this name */
export function requireNamespaceName(name: string): string {
  if (!NAMESPACE_NAME.test(name)) {
    throw new InvalidInputError(
      'name must be 3 to 39 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
    );
  }
  if (RESERVED_NAMESPACES.has(name)) throw new InvalidInputError(`"${name}" is reserved: choose another name`);
  return name;
}
