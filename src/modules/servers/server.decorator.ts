import type { Request } from 'express';
import { createParamDecorator, Injectable, type ExecutionContext, type PipeTransform } from '@nestjs/common';
import { ApiParam } from '#api-docs';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { NAMESPACE_NAME, SERVER_NAME } from '../../platform/http/resource-names.js';
import type { GrantedRequest } from '../auth/access.decorator.js';
import { type QualifiedName, parseQualifiedName, type ServerRef } from './server.types.js';
import { ServersService } from './servers.service.js';
import { NotServerOwnerError, ServerNotFoundError } from './servers.errors.js';

export const qualifiedNameParam = {
  name: 'qualifiedName',
  description: '`namespace/server` or `namespace`, with `/` or `%2F`. Claim a namespace with `PUT /namespaces/{name}`.',
  example: 'acme/weather',
};

/** Terms for callers that own the namespace or have a grant with `manage`. */
export const inOwnNamespace = {
  inNamespace: true,
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new NotServerOwnerError(),
} as const;

/** Terms for changes of public records: a server of another account returns 403, since its existence is public. */
export const ownServer = {
  owner: 'qualifiedName',
  missing: () => new ServerNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

/** Terms for actions that no grant opens: a server of another account returns 403. */
export const ownServerOnly = { ...ownServer, may: 'administer' } as const;

/** Terms for data that only the owner can see: a server of another account returns 404, like a missing one. */
export const ownServerOrNone = { owner: 'qualifiedName', missing: () => new ServerNotFoundError() };

/** Terms for publishing: published tools distinguish the two 404s by their messages, and create a missing server. */
export const publishedServer = {
  owner: 'qualifiedName',
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new ServerNotFoundError(),
};

export const serverNotFound = { status: 404, message: 'Server not found' };

export const notServerOwner = { status: 403, message: "Forbidden: You don't own this server" };

const NAME_RULE =
  'a namespace is 3 to 39 lower-case letters, digits and hyphens, and a server 3 to 39 letters, digits, hyphens and underscores.';

/** @throws ServerNotFoundError if no server can have the name */
export function toQualifiedName(text: string): QualifiedName {
  const parsed = parseQualifiedName(text);
  const { namespace, name } = parsed;
  if (!NAMESPACE_NAME.test(namespace) || (name !== '' && !SERVER_NAME.test(name))) {
    throw new ServerNotFoundError(`No server can have this name: ${NAME_RULE}`);
  }
  return parsed;
}

/** Finds the server of a route, whose namespace the access rule has checked. */
@Injectable()
export class ServerPipe implements PipeTransform<Request & Partial<GrantedRequest>, Promise<ServerRef>> {
  constructor(private readonly serversService: ServersService) {}

  /** @throws ServerNotFoundError */
  async transform({ params, grant }: Request & Partial<GrantedRequest>): Promise<ServerRef> {
    const server = await this.serversService.find(
      toQualifiedName(String(params.qualifiedName)),
      grant === undefined || grant.isSigned ? null : grant.caller,
    );
    // Owners are cached: the namespace might have been deleted and claimed by another account meanwhile.
    if (grant?.namespace && grant.namespace.id !== server.namespaceId) throw new ServerNotFoundError();
    return server;
  }
}

const CurrentRequest = createParamDecorator((_: unknown, context: ExecutionContext): Request => {
  return context.switchToHttp().getRequest();
});

/** Injects the server of `:qualifiedName` as a {@link ServerRef}. The access rule checks its owner. */
export function TargetServer(): ParameterDecorator {
  return CurrentRequest(ServerPipe);
}

/** Documents the parameter `:qualifiedName`. */
export function ApiServerName(): MethodDecorator & ClassDecorator {
  return ApiParam(qualifiedNameParam);
}
