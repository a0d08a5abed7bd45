import { Injectable, Param, type PipeTransform } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { QualifiedNamePipe } from './qualified-name.js';
import type { ServerRef } from './server.types.js';
import { qualifiedNameParam } from './servers.access.js';
import { ServersService } from './servers.service.js';

export { ownServerOrNone } from './servers.access.js';

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
