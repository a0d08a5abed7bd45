import { ResourceNotFoundError } from './connections.errors.js';

/** Connections are readable only by the owner of the namespace; for others they look like missing ones. */
export const ownConnections = { owner: 'namespace', missing: () => new ResourceNotFoundError() };

export const namespaceParam = { name: 'namespace', description: 'The namespace.', example: 'acme' };

export const connectionIdParam = {
  name: 'connectionId',
  description: 'The connection: `[A-Za-z0-9._-]{1,255}`, no dot in front.',
  example: 'my-first',
};
