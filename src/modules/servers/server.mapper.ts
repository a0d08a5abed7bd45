import { formatQualifiedName, type QualifiedName } from './qualified-name.js';
import type { ServerDetailDto, ServerDto } from './server.dto.js';
import type { Server } from './server.entity.js';

export function toServerDto(namespace: string, server: Server): ServerDto {
  return {
    namespace,
    server: server.name,
    displayName: server.displayName,
    description: server.description,
    createdAt: server.createdAt.toISOString(),
  };
}

/** A server without a release: everything a release brings is absent in the way the contract says absence. */
export function toServerDetailDto(name: QualifiedName, server: Server): ServerDetailDto {
  return {
    qualifiedName: formatQualifiedName(name),
    displayName: server.displayName,
    description: server.description,
    iconUrl: null,
    remote: false,
    deploymentUrl: null,
    connections: [],
    security: null,
    tools: null,
    resources: null,
    prompts: null,
  };
}
