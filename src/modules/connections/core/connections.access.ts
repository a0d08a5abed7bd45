import { applyDecorators, Controller } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam } from '@nestjs/swagger';
import { Access, FastPath } from '../../auth/access.decorator.js';
import type { AccessTerms } from '../../auth/access.types.js';
import { ResourceNotFoundError } from './connections.errors.js';

/** The kind of setup links that lead to a connection. */
export const CONNECTION_LINKS = 'connections';

/** Connections are open only to the owner of the namespace and its grantees; for others they look like missing ones. */
export const ownConnections = { owner: 'namespace', missing: () => new ResourceNotFoundError() };

/** For what shows no more than callers must know: also open to accounts that were granted only calls. */
export const callableConnections = { ...ownConnections, may: 'discover' } as const;

/** For calls and lists of tools, which know the tools of a grant. */
export const toolsOfConnections = { ...ownConnections, byTool: true } as const;
export const listedTools = { ...callableConnections, byTool: true } as const;

/** For what stays with the owner, whatever was granted. */
export const ownConnectionsOnly = { ...ownConnections, may: 'administer' } as const;

export const namespaceParam = { name: 'namespace', description: 'The namespace.', example: 'acme' };

export const connectionIdParam = {
  name: 'connectionId',
  description: 'The connection: `[A-Za-z0-9._-]{1,255}`, no dot in front.',
  example: 'my-first',
};

/** A controller below the path of a connection. */
export const ConnectionController = (path: string) =>
  applyDecorators(
    ApiParam(connectionIdParam),
    ApiParam(namespaceParam),
    Controller(`connect/:namespace/:connectionId/${path}`),
  );

/** A route of an MCP endpoint that the API description leaves out. */
export const McpSessionRoute = (method: () => MethodDecorator, terms: AccessTerms) =>
  applyDecorators(method(), FastPath(), ApiExcludeEndpoint(), Access('connections:execute', terms));
