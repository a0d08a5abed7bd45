import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { SetConnectionDto } from './connection.dto.js';
import type { Connection } from './connection.entity.js';
import { ConnectionTargetError } from './connections.errors.js';

const CONNECTION_ID = /^(?!\.)[A-Za-z0-9._-]{1,255}$/;

/** Whether a connection may have this id. */
export function isConnectionId(id: string): boolean {
  return CONNECTION_ID.test(id);
}

/** @throws InvalidInputError when no connection may have this id */
export function requireConnectionId(id: string): void {
  if (isConnectionId(id)) return;
  throw new InvalidInputError(
    'connectionId must be 1 to 255 letters, digits, dots, hyphens and underscores, and not begin with a dot',
  );
}

function targetsOf({ mcpUrl, server, source }: SetConnectionDto): string[] {
  return Object.entries({ mcpUrl, server, source }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

/** What the contract knows and this service does not do yet is refused by name, not silently dropped. */
function requireAvailable(body: SetConnectionDto): void {
  if (body.mock?.enabled && body.mcpUrl !== undefined) {
    throw new InvalidInputError('mock is for registry servers only: give server instead of mcpUrl');
  }
  const missing = [
    ...(body.transport === 'uplink' ? ['transport "uplink"'] : []),
    ...(body.server === undefined ? [] : ['server']),
    ...(body.source === undefined ? [] : ['source']),
    ...(body.mock?.enabled ? ['mock'] : []),
  ];
  if (missing.length > 0) throw new InvalidInputError(`${missing.join(' and ')} is not available yet: give mcpUrl`);
}

/**
 * The URL a new connection leads to.
 *
 * @throws InvalidInputError unless there is exactly one target that fits the transport
 */
export function requireNewTarget(body: SetConnectionDto): string {
  const targets = targetsOf(body);
  if (body.transport === 'uplink' && targets.length > 0) {
    throw new InvalidInputError(`transport "uplink" takes no ${targets.join(' and ')}`);
  }
  if (body.transport !== 'uplink' && targets.length !== 1) {
    throw new InvalidInputError('give exactly one of mcpUrl, server and source');
  }
  requireAvailable(body);
  return body.mcpUrl as string;
}

/**
 * That a change leaves the connection's target alone.
 *
 * @throws ConnectionTargetError, InvalidInputError
 */
export function requireSameTarget(existing: Connection, body: SetConnectionDto): void {
  if (body.transport === 'uplink') throw new ConnectionTargetError('transport');
  if (targetsOf(body).length > 1) throw new InvalidInputError('give at most one of mcpUrl, server and source');
  if (body.server !== undefined || body.source !== undefined) requireAvailable({ ...body, mock: undefined });
  if (body.mcpUrl !== undefined && body.mcpUrl !== existing.mcpUrl) throw new ConnectionTargetError('mcpUrl');
}
