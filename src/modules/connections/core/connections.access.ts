import { applyDecorators, Controller } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam } from '#api-docs';
import { Access, FastPath } from '../../auth/access.decorator.js';
import type { AccessTerms } from '../../auth/access.types.js';
import { ResourceNotFoundError } from './connections.errors.js';

export const CONNECTION_LINKS = 'connections';

/** Terms for connections, which are visible only to the owner of the namespace and its grantees; other callers receive 404. */
export const ownConnections = { owner: 'namespace', missing: () => new ResourceNotFoundError() };

/** Terms that include accounts with the level `call`, for routes that return only what callers need. */
export const callableConnections = { ...ownConnections, may: 'discover' } as const;

/** Terms for routes that enforce the tools of a grant themselves. */
export const toolsOfConnections = { ...ownConnections, byTool: true } as const;
export const listedTools = { ...callableConnections, byTool: true } as const;

/** Terms for actions that only the owner can take, whatever the grants. */
export const ownConnectionsOnly = { ...ownConnections, may: 'administer' } as const;

export const namespaceParam = { name: 'namespace', description: 'The namespace.', example: 'acme' };

export const connectionIdParam = {
  name: 'connectionId',
  description: 'The connection: `[A-Za-z0-9._-]{1,255}`, no dot in front.',
  example: 'my-first',
};

export const ConnectionController = (path: string) =>
  applyDecorators(
    ApiParam(connectionIdParam),
    ApiParam(namespaceParam),
    Controller(`connect/:namespace/:connectionId/${path}`),
  );

/** Declares a route that the API document leaves out. */
export const McpSessionRoute = (method: () => MethodDecorator, terms: AccessTerms) =>
  applyDecorators(method(), FastPath(), ApiExcludeEndpoint(), Access('connections:execute', terms));
