import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import type { ConnectionDto, ConnectionStatusDto, ServerInfoDto } from './connection.dto.js';
import { statusReasons } from './connection-status.js';
import type { ConnectionUrls } from './connection-urls.js';
import type { Connection } from './connection.entity.js';

/** The columns that an answer is made from. Sealed values are not among them. */
export const shownColumns = [
  'id',
  'connectionId',
  'name',
  'targetKind',
  'mcpUrl',
  'metadata',
  'mock',
  'setupEpoch',
  'statusState',
  'statusReason',
  'statusMessage',
  'statusInputs',
  'statusSince',
  'lastOkAt',
  'serverInfo',
  'createdAt',
] as const satisfies (keyof Connection)[];

/** `slug` is that of the registry server; null for other targets. */
export type ShownConnection = Pick<Connection, (typeof shownColumns)[number]> & { slug: string | null };

function toStatusDto(row: ShownConnection, urls: ConnectionUrls): ConnectionStatusDto {
  const { statusState: state, statusReason: reason, statusInputs: inputs } = row;
  const { nextStep } = statusReasons[reason];
  return {
    state,
    reason,
    ...(row.statusMessage === null ? {} : { message: row.statusMessage }),
    since: row.statusSince.toISOString(),
    ...(row.lastOkAt === null ? {} : { lastOkAt: row.lastOkAt.toISOString() }),
    ...(nextStep === null ? {} : { nextStep }),
    ...(inputs === null ? {} : { http: inputs.http, missing: inputs.missing }),
    ...setupOf(row, urls),
  };
}

/** Published clients also read the older name, `authorizationUrl`. */
function setupOf(
  { id, statusState, setupEpoch }: ShownConnection,
  urls: ConnectionUrls,
): Pick<ConnectionStatusDto, 'setupUrl' | 'authorizationUrl'> {
  if (statusState !== 'auth_required' && statusState !== 'input_required') return {};
  const setupUrl = urls.setup(id, setupEpoch);
  return statusState === 'auth_required' ? { setupUrl, authorizationUrl: setupUrl } : { setupUrl };
}

function toServerInfoDto({ name, version, title, icons, websiteUrl, description }: ServerInfo): ServerInfoDto {
  return { name, version, title, icons, websiteUrl, description };
}

/** The first icon that a browser can load. */
function iconUrlOf(info: ServerInfo | null): string | null {
  return info?.icons?.find(({ src }) => /^(https?:\/\/|data:image\/)/.test(src))?.src ?? null;
}

/** Lists every field of an answer, so that no other column leaves the service. */
export function toConnectionDto(row: ShownConnection, urls: ConnectionUrls): ConnectionDto {
  return {
    connectionId: row.connectionId,
    name: row.name,
    mcpUrl: row.slug === null ? row.mcpUrl : urls.run(row.slug),
    metadata: row.metadata,
    transport: row.targetKind === 'uplink' ? 'uplink' : 'http',
    ...(row.mock === null ? {} : { mock: { enabled: true, ...row.mock } }),
    iconUrl: iconUrlOf(row.serverInfo),
    createdAt: row.createdAt.toISOString(),
    status: toStatusDto(row, urls),
    ...(row.serverInfo === null ? {} : { serverInfo: toServerInfoDto(row.serverInfo) }),
  };
}
