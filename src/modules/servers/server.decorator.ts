import { Injectable, Param, type PipeTransform } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { QualifiedNamePipe } from './qualified-name.js';
import type { ServerRef } from './server.types.js';
import { ServersService } from './servers.service.js';
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

/** Resolves a qualified name to a server. */
@Injectable()
export class ServerPipe implements PipeTransform<string, Promise<ServerRef>> {
  private readonly names = new QualifiedNamePipe();

  constructor(private readonly servers: ServersService) {}

  /** @throws ServerNotFoundError */
  transform(text: string): Promise<ServerRef> {
    return this.servers.find(this.names.transform(text));
  }
}

/** The server of `:qualifiedName`, as a {@link ServerRef}. The access rule checks its owner. */
export function TargetServer(): ParameterDecorator {
  return Param('qualifiedName', ServerPipe);
}

/** Documents `:qualifiedName`. */
export function ApiServerName(): MethodDecorator & ClassDecorator {
  return ApiParam(qualifiedNameParam);
}
