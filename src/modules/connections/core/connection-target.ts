import { parseUrl } from '../../../config/parse-url.js';
import { storableFault } from '../../../platform/database/storable.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { isObject } from '../../../platform/text/json.js';
import type { SetConnectionDto } from './connection.dto.js';
import type { Connection, QueryValues, StoredSource } from './connection.entity.js';
import { targetConflict } from './connections.errors.js';

/** Maximum size of a file, as in published clients. */
const SOURCE_BYTES_MAX = 128 * 1024;
const SOURCE_NAME = /^(?!\.)[\w.-]{1,200}\.(?:ts|tsx|mts|cts)$/;

const CONNECTION_ID = /^(?!\.)[A-Za-z0-9._-]{1,255}$/;

export function isConnectionId(id: string): boolean {
  return CONNECTION_ID.test(id);
}

export function requireConnectionId(id: string): void {
  if (isConnectionId(id)) return;
  throw new InvalidInputError(
    'connectionId must be 1 to 255 letters, digits, dots, hyphens and underscores, and not begin with a dot',
  );
}

/** The target that a body names, before the registry is queried. */
export type RequestedTarget =
  | { kind: 'url'; url: string }
  | { kind: 'server'; name: string }
  | { kind: 'source'; source: StoredSource }
  | { kind: 'uplink' };

export interface NewTarget extends Pick<
  Connection,
  'targetKind' | 'mcpUrl' | 'serverId' | 'serverName' | 'source' | 'isStateful'
> {
  /** The only tools that the owner of the namespace can call; null for all. */
  grantedTools: readonly string[] | null;
  /** Values for a registry server, from the query of its address; the `command` of an uplink. */
  query: QueryValues;
}

function targetsOf({ mcpUrl, server, source }: SetConnectionDto): string[] {
  return Object.entries({ mcpUrl, server, source }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

/** @throws InvalidInputError unless the body names exactly one target that fits its transport and all other members */
export function requireNewTarget(body: SetConnectionDto): RequestedTarget {
  const targets = targetsOf(body);
  if (body.transport === 'uplink') {
    const unfit = [...targets, ...(body.headers === undefined ? [] : ['headers'])];
    if (unfit.length > 0) throw new InvalidInputError(`transport "uplink" accepts no ${unfit.join(' and ')}`);
    requireNoMock(body, 'an uplink');
    return { kind: 'uplink' };
  }
  if (targets.length !== 1) throw new InvalidInputError('send exactly one of mcpUrl, server and source');
  if (body.server !== undefined) return { kind: 'server', name: body.server.replace(/^@/, '') };
  if (body.source !== undefined) {
    if (body.headers !== undefined) throw new InvalidInputError('source accepts no headers: the module runs here');
    requireNoMock(body, 'a source');
    return { kind: 'source', source: requireSource(body.source) };
  }
  return { kind: 'url', url: body.mcpUrl as string };
}

/** @throws InvalidInputError unless the body names a target to create it with */
export function requireTarget(connectionId: string, body: SetConnectionDto): void {
  if (body.transport === 'uplink' || targetsOf(body).length > 0) return;
  throw new InvalidInputError(
    `There is no connection ${connectionId}; to create it send exactly one of mcpUrl, server and source.`,
  );
}

/** @throws InvalidInputError */
export function requireNoMock({ mock }: SetConnectionDto, kind: string): void {
  if (mock?.enabled) throw new InvalidInputError(`mock is for registry servers only, not for ${kind}: send server`);
}

/**
 * Requires that a change names the stored target, and returns null if it names none. The query of an address can change while values are
 * missing, and always for registry servers, whose query contains only values.
 *
 * @throws ConflictError, InvalidInputError
 */
export function requireSameTarget(existing: Connection, body: SetConnectionDto): RequestedTarget | null {
  const transport = existing.targetKind === 'uplink' ? 'uplink' : 'http';
  if (body.transport !== undefined && body.transport !== transport) throw targetConflict('transport');
  const targets = targetsOf(body);
  if (targets.length > 1) throw new InvalidInputError('send at most one of mcpUrl, server and source');
  if (transport === 'uplink' || existing.targetKind === 'source') {
    if (body.headers !== undefined && Object.keys(body.headers).length > 0) {
      throw new InvalidInputError(
        `A connection to ${transport === 'uplink' ? 'an uplink' : 'a source'} accepts no headers`,
      );
    }
  }
  if (targets.length === 0) return null;
  if (transport === 'uplink') throw targetConflict('transport');
  return requireNewTarget({ ...body, transport: undefined, headers: undefined, mock: undefined });
}

export function isSamePlace(url: string, other: string): boolean {
  const [a, b] = [parseUrl(url), parseUrl(other)];
  return a !== null && b !== null && a.origin === b.origin && a.pathname === b.pathname;
}

export function queryOf(address: string): QueryValues {
  return [...(parseUrl(address)?.searchParams ?? [])];
}

/** Accepts a module only as published clients send it: one TypeScript file that is its own entrypoint. */
export function requireSource(value: Record<string, unknown>): StoredSource {
  const { kind, entrypoint, sourceFiles, ...rest } = value;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new InvalidInputError(`source has no member "${unknown}"`);
  if (kind !== 'module') throw new InvalidInputError('source.kind must be "module"');
  if (typeof entrypoint !== 'string' || !SOURCE_NAME.test(entrypoint)) {
    throw new InvalidInputError('source.entrypoint must name a .ts, .tsx, .mts or .cts file');
  }
  if (!Array.isArray(sourceFiles) || sourceFiles.length !== 1 || !isObject(sourceFiles[0])) {
    throw new InvalidInputError('source.sourceFiles must hold exactly one file: {path, contents}');
  }
  const { path, contents, ...more } = sourceFiles[0];
  const [extra] = Object.keys(more);
  if (extra !== undefined) throw new InvalidInputError(`a source file has no member "${extra}"`);
  if (path !== entrypoint) throw new InvalidInputError('source.entrypoint must be the path of the source file');
  if (typeof contents !== 'string' || contents.trim() === '') {
    throw new InvalidInputError('the contents of a source file must be its text');
  }
  const fault = storableFault(contents);
  if (fault !== null) throw new InvalidInputError(`the contents of ${entrypoint} ${fault}`);
  if (Buffer.byteLength(contents) > SOURCE_BYTES_MAX) {
    throw new InvalidInputError(`${entrypoint} must be at most ${SOURCE_BYTES_MAX / 1024} KB`);
  }
  return { kind: 'module', entrypoint, sourceFiles: [{ path: entrypoint, contents }] };
}
