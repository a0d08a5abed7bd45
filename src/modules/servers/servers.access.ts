import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { NotServerOwnerError, ServerNotFoundError } from './servers.errors.js';

export const qualifiedNameParam = {
  name: 'qualifiedName',
  description: '`namespace/server`, or `namespace` alone. The slash may be encoded as `%2F` or not.',
  example: 'acme/weather',
};

/** Creating: the namespace must be there, and the caller's. */
export const inOwnNamespace = {
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

/** What everybody can see but only its owner changes: a foreign one is forbidden, as everybody may know that it exists. */
export const ownServer = {
  owner: 'qualifiedName',
  missing: () => new ServerNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

/** What only its owner may know of: foreign and missing look the same. */
export const ownServerOrNone = { owner: 'qualifiedName', missing: () => new ServerNotFoundError() };

export const serverNotFound = { status: 404, message: 'Server not found' };
export const notServerOwner = { status: 403, message: "Forbidden: You don't own this server" };
