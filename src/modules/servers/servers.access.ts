import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { NotServerOwnerError, ServerNotFoundError } from './servers.errors.js';

export const qualifiedNameParam = {
  name: 'qualifiedName',
  description: '`namespace/server`, or `namespace` alone. The slash may be encoded as `%2F` or not.',
  example: 'acme/weather',
};

/** For creating a server: the namespace must exist and belong to the caller. */
export const inOwnNamespace = {
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

/** For changes of public records: a foreign server is 403, since its existence is public. */
export const ownServer = {
  owner: 'qualifiedName',
  missing: () => new ServerNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

/** For what only the owner may see: a foreign server is 404 like a missing one. */
export const ownServerOrNone = { owner: 'qualifiedName', missing: () => new ServerNotFoundError() };

export const serverNotFound = { status: 404, message: 'Server not found' };
export const notServerOwner = { status: 403, message: "Forbidden: You don't own this server" };
