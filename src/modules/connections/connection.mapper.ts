import type { ServerInfo } from '../../mcp/protocol.js';
import type { ConnectionDto, ConnectionStatusDto, ServerInfoDto } from './connection.dto.js';
import type { Connection } from './connection.entity.js';

/** What of a row is shown; headers are none of it. */
export const shownColumns = [
  'connectionId',
  'name',
  'mcpUrl',
  'metadata',
  'statusState',
  'statusMessage',
  'statusSince',
  'lastOkAt',
  'serverInfo',
  'createdAt',
] as const satisfies (keyof Connection)[];

export type ShownConnection = Pick<Connection, (typeof shownColumns)[number]>;

function toStatusDto(row: ShownConnection): ConnectionStatusDto {
  return {
    state: row.statusState,
    ...(row.statusMessage === null ? {} : { message: row.statusMessage }),
    since: row.statusSince.toISOString(),
    ...(row.lastOkAt === null ? {} : { lastOkAt: row.lastOkAt.toISOString() }),
  };
}

function toServerInfoDto({ name, version, title, icons, websiteUrl, description }: ServerInfo): ServerInfoDto {
  return { name, version, title, icons, websiteUrl, description };
}

/** The first icon a browser can load by itself. */
function iconUrlOf(info: ServerInfo | null): string | null {
  return info?.icons?.find(({ src }) => /^(https?:\/\/|data:image\/)/.test(src))?.src ?? null;
}

/** Lists every field that may leave the service. */
export function toConnectionDto(row: ShownConnection): ConnectionDto {
  return {
    connectionId: row.connectionId,
    name: row.name,
    mcpUrl: row.mcpUrl,
    metadata: row.metadata,
    transport: 'http',
    iconUrl: iconUrlOf(row.serverInfo),
    createdAt: row.createdAt.toISOString(),
    status: toStatusDto(row),
    ...(row.serverInfo === null ? {} : { serverInfo: toServerInfoDto(row.serverInfo) }),
  };
}
