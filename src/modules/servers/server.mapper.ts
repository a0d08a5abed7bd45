import { isObject } from '../../platform/text/json.js';
import type {
  PromptArgumentDto,
  PromptSummaryDto,
  ResourceSummaryDto,
  ServerDetailDto,
  ServerDto,
  ToolSummaryDto,
} from './server.dto.js';
import type { Server } from './server.entity.js';
import type { ServerSummaryDto } from './search/server-search.dto.js';
import type { IconOrigin, ServerUrlsService } from './server-urls.service.js';
import { type QualifiedName, formatQualifiedName, type ServerTarget, withinTools } from './server.types.js';
import { shownSuspension, type Suspension } from '../auth/suspension.types.js';

type Item = Record<string, unknown>;

export function toServerDto(namespace: string, server: Server): ServerDto {
  return {
    namespace,
    server: server.name,
    displayName: server.displayName,
    description: server.description,
    createdAt: server.createdAt.toISOString(),
  };
}

export type DetailRow = QualifiedName &
  Pick<Server, 'displayName' | 'description' | 'slug' | 'snapshot' | 'scanPassed'> &
  Pick<ServerTarget, 'visibility'> &
  IconOrigin & {
    /** True for a public server with secrets. */
    lendsSecrets: boolean;
    /** The suspension, of the server or its namespace. */
    suspended: Suspension | null;
  };

const LENDS_SECRETS = {
  tool: null,
  message: 'The server has secrets of its owner, and is public: everybody who calls it works with them.',
};

/**
 * Converts a server. Without a release, fields are null, false or empty, as the contract requires.
 *
 * @param mayCall false hides configuration and bundle, which only callers need
 * @param tools the only tools granted to the caller, which hide the bundle and everything else of a private server;
 * null: all
 */
export function toServerDetailDto(
  row: DetailRow,
  urls: ServerUrlsService,
  mayCall: boolean,
  tools: readonly string[] | null,
): ServerDetailDto {
  const { scanPassed } = row;
  const shownTools = row.visibility === 'private' ? tools : null;
  const snapshot = row.snapshot && withinTools(row.snapshot, shownTools);
  const remote = snapshot !== null && urls.remoteTypes.includes(snapshot.type);
  const connections: ServerDetailDto['connections'] = [];
  if (snapshot && mayCall) {
    const { runtime, configSchema } = snapshot;
    if (remote) connections.push({ type: 'http', deploymentUrl: urls.run(row.slug), configSchema });
    if (snapshot.type === 'stdio' && !tools)
      connections.push({ type: 'stdio', bundleUrl: urls.bundle(row), runtime: runtime ?? 'node', configSchema });
  }
  const warned = (snapshot?.warnings ?? []).filter(({ tool }) => !shownTools || shownTools.includes(tool ?? ''));
  const warnings = [...(row.lendsSecrets ? [LENDS_SECRETS] : []), ...warned]
    .slice(0, 100)
    .map(({ tool, message }) => ({ tool, message }));
  const broken = new Set(warned.flatMap(({ tool, isBroken }) => (isBroken ? [tool] : [])));
  return {
    qualifiedName: formatQualifiedName(row),
    displayName: row.displayName,
    description: row.description,
    visibility: row.visibility,
    ...shownSuspension(row.suspended),
    iconUrl: urls.icon(row, row),
    remote,
    deploymentUrl: remote ? urls.run(row.slug) : null,
    connections,
    currentReleaseId: snapshot?.releaseId ?? null,
    security: scanPassed === null ? null : { scanPassed, ...(warnings.length > 0 && { warnings }) },
    tools: summaries(snapshot?.tools, (item) => toTool(item, broken)),
    resources: summaries(snapshot?.resources, toResource),
    prompts: summaries(snapshot?.prompts, toPrompt),
  };
}

/** Returns the items with all members that the contract requires; null if the list is unknown. */
function summaries<T>(items: Item[] | null | undefined, toSummary: (item: Item) => T | null): T[] | null {
  return items ? items.map(toSummary).filter((item) => item !== null) : null;
}

function pickTexts<Name extends string>(item: Item, ...names: Name[]): Partial<Record<Name, string>> {
  const entries = names.filter((name) => typeof item[name] === 'string').map((name) => [name, item[name]]);
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

/** Converts a tool. The contract requires an object schema with properties, whatever a tool declares. */
function toTool(item: Item, broken: ReadonlySet<string | null>): ToolSummaryDto | null {
  const { name, description = null } = pickTexts(item, 'name', 'description');
  if (name === undefined) return null;
  const { inputSchema, outputSchema } = item;
  return {
    name,
    description,
    inputSchema: { properties: {}, ...(isObject(inputSchema) && inputSchema), type: 'object' },
    ...(isObject(outputSchema) && { outputSchema: { ...outputSchema, type: 'object' } }),
    ...(broken.has(name) && { broken: true }),
  };
}

function toResource(item: Item): ResourceSummaryDto | null {
  const { name, uri, ...rest } = pickTexts(item, 'name', 'uri', 'description', 'mimeType');
  return name === undefined || uri === undefined ? null : { name, uri, ...rest };
}

function toPrompt(item: Item): PromptSummaryDto | null {
  const { name, ...rest } = pickTexts(item, 'name', 'description');
  if (name === undefined) return null;
  const list = item.arguments;
  return { name, ...rest, ...(Array.isArray(list) && { arguments: list.flatMap(toArgument) }) };
}

function toArgument(item: unknown): PromptArgumentDto[] {
  if (!isObject(item)) return [];
  const { name, ...rest } = pickTexts(item, 'name', 'description');
  if (name === undefined) return [];
  return [{ name, ...rest, ...(typeof item.required === 'boolean' && { required: item.required }) }];
}

export type ListedRow = Pick<Server, 'id' | 'name' | 'displayName' | 'description' | 'visibility' | 'verified'> &
  Pick<Server, 'useCount' | 'currentType' | 'createdAt' | 'homepage'> &
  IconOrigin & { namespace: string; owner: string };

/** @param score for the search; null without one */
export function toServerSummaryDto(row: ListedRow, score: number | null, urls: ServerUrlsService): ServerSummaryDto {
  return {
    id: row.id,
    qualifiedName: formatQualifiedName(row),
    namespace: row.namespace,
    slug: row.name,
    displayName: row.displayName,
    description: row.description,
    visibility: row.visibility,
    iconUrl: urls.icon(row, row),
    verified: row.verified,
    useCount: Number(row.useCount),
    remote: row.currentType === null ? null : urls.remoteTypes.includes(row.currentType),
    isDeployed: row.currentType !== null,
    createdAt: row.createdAt.toISOString(),
    homepage: row.homepage ?? urls.record(row),
    bySmithery: false,
    owner: row.owner,
    score,
  };
}
