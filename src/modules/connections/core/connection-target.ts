import { parseUrl } from '../../../config/parse-url.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SetConnectionDto } from './connection.dto.js';
import type { Connection } from './connection.entity.js';
import type { QueryValues, StoredSource, TargetKind } from './connection.types.js';
import { ConnectionTargetError } from './connections.errors.js';
import { requireSource } from './connection-source.js';

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

/** The target a body names, before the registry was asked. */
export type GivenTarget =
  | { kind: 'url'; url: string }
  | { kind: 'server'; name: string }
  | { kind: 'source'; source: StoredSource }
  | { kind: 'uplink' };

/** The target of a new connection, as its row keeps it. */
export interface NewTarget {
  targetKind: TargetKind;
  mcpUrl: string | null;
  serverId: string | null;
  serverName: string | null;
  source: StoredSource | null;
  /** The module keeps sessions. */
  isStateful: boolean;
  /** Values for a registry server that came in the query of its address. */
  query: QueryValues;
}

function targetsOf({ mcpUrl, server, source }: SetConnectionDto): string[] {
  return Object.entries({ mcpUrl, server, source }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

/**
 * The target of a new connection.
 *
 * @throws InvalidInputError unless there is exactly one that fits the transport, and nothing that does not fit it
 */
export function requireNewTarget(body: SetConnectionDto): GivenTarget {
  const targets = targetsOf(body);
  if (body.transport === 'uplink') {
    const unfit = [...targets, ...(body.headers === undefined ? [] : ['headers'])];
    if (unfit.length > 0) throw new InvalidInputError(`transport "uplink" takes no ${unfit.join(' and ')}`);
    requireNoMock(body, 'an uplink');
    return { kind: 'uplink' };
  }
  if (targets.length !== 1) throw new InvalidInputError('give exactly one of mcpUrl, server and source');
  if (body.server !== undefined) return { kind: 'server', name: body.server.replace(/^@/, '') };
  if (body.source !== undefined) {
    if (body.headers !== undefined) throw new InvalidInputError('source takes no headers: the module runs here');
    requireNoMock(body, 'a source');
    return { kind: 'source', source: requireSource(body.source) };
  }
  return { kind: 'url', url: body.mcpUrl as string };
}

/** @throws InvalidInputError */
export function requireNoMock({ mock }: SetConnectionDto, what: string): void {
  if (mock?.enabled) throw new InvalidInputError(`mock is for registry servers only, not for ${what}: give server`);
}

/**
 * The target a change names, if it names one. It must be the stored one; of an address another query is allowed where
 * values are waited for, and for registry servers, whose query holds nothing but values.
 *
 * @throws ConnectionTargetError, InvalidInputError
 */
export function requireSameTarget(existing: Connection, body: SetConnectionDto): GivenTarget | null {
  const transport = existing.targetKind === 'uplink' ? 'uplink' : 'http';
  if (body.transport !== undefined && body.transport !== transport) throw new ConnectionTargetError('transport');
  const targets = targetsOf(body);
  if (targets.length > 1) throw new InvalidInputError('give at most one of mcpUrl, server and source');
  if (transport === 'uplink' || existing.targetKind === 'source') {
    if (body.headers !== undefined && Object.keys(body.headers).length > 0) {
      throw new InvalidInputError(
        `A connection to ${transport === 'uplink' ? 'an uplink' : 'a source'} takes no headers`,
      );
    }
  }
  if (targets.length === 0) return null;
  if (transport === 'uplink') throw new ConnectionTargetError('transport');
  return requireNewTarget({ ...body, transport: undefined, headers: undefined, mock: undefined });
}

/** Whether two addresses differ in their query only. */
export function isSamePlace(one: string, other: string): boolean {
  const [a, b] = [parseUrl(one), parseUrl(other)];
  return a !== null && b !== null && a.origin === b.origin && a.pathname === b.pathname;
}

/** The values in the query of an address. */
export function queryOf(address: string): QueryValues {
  return [...(parseUrl(address)?.searchParams ?? [])];
}
