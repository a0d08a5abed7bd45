import { formatQualifiedName, type QualifiedName } from './qualified-name.js';
import type {
  HttpServerConnectionDto,
  PromptArgumentDto,
  PromptSummaryDto,
  ResourceSummaryDto,
  ServerDetailDto,
  ServerDto,
  StdioServerConnectionDto,
  ToolSummaryDto,
} from './server.dto.js';
import type { Server } from './server.entity.js';
import type { ServerRuntimeDto } from './settings/server-runtime.dto.js';
import type { ServerRuntime } from './settings/server-runtime.entity.js';
import type { ServerSummaryDto } from './search/server-search.dto.js';
import type { ServerDomainDto } from './settings/server-settings.dto.js';
import type { IconOrigin, ServerUrlsService } from './server-urls.service.js';
import type { ReleaseType, ServerSnapshot } from './server.types.js';
import { isObject } from '../../platform/text/json.js';

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

/** What the detail of a server is made from. */
export type DetailRow = Pick<Server, 'displayName' | 'description' | 'slug' | 'snapshot' | 'scanPassed'> & IconOrigin;

/** Without a release, everything a release brings is absent in the way the contract says absence. */
export function toServerDetailDto(name: QualifiedName, row: DetailRow, links: ServerUrlsService): ServerDetailDto {
  const { snapshot, scanPassed } = row;
  const remote = snapshot !== null && isRemote(snapshot.type);
  return {
    qualifiedName: formatQualifiedName(name),
    displayName: row.displayName,
    description: row.description,
    iconUrl: links.icon(name, row),
    remote,
    deploymentUrl: remote ? links.run(row.slug) : null,
    connections: snapshot ? [toConnection(name, row.slug, snapshot, links)] : [],
    security: scanPassed === null ? null : { scanPassed },
    tools: summaries(snapshot?.tools, toTool),
    resources: summaries(snapshot?.resources, toResource),
    prompts: summaries(snapshot?.prompts, toPrompt),
  };
}

function isRemote(type: ReleaseType): boolean {
  return type !== 'stdio';
}

function toConnection(
  name: QualifiedName,
  slug: string,
  { type, runtime, configSchema }: ServerSnapshot,
  links: ServerUrlsService,
): HttpServerConnectionDto | StdioServerConnectionDto {
  if (isRemote(type)) return { type: 'http', deploymentUrl: links.run(slug), configSchema };
  return { type: 'stdio', bundleUrl: links.bundle(name), runtime: runtime ?? 'node', configSchema };
}

/** The items that have what the contract requires; null when nothing is known of them. */
function summaries<T>(items: Item[] | null | undefined, toSummary: (item: Item) => T | null): T[] | null {
  return items ? items.map(toSummary).filter((item) => item !== null) : null;
}

/** The members of these names that are texts. */
function texts<Name extends string>(item: Item, ...names: Name[]): Partial<Record<Name, string>> {
  const found = names.filter((name) => typeof item[name] === 'string').map((name) => [name, item[name]]);
  return Object.fromEntries(found) as Partial<Record<Name, string>>;
}

/** The contract's schema of arguments is one of an object with properties, whatever a tool declares. */
function toTool(item: Item): ToolSummaryDto | null {
  const { name, description = null } = texts(item, 'name', 'description');
  if (name === undefined) return null;
  const { inputSchema, outputSchema } = item;
  return {
    name,
    description,
    inputSchema: { properties: {}, ...(isObject(inputSchema) && inputSchema), type: 'object' },
    ...(isObject(outputSchema) && { outputSchema: { ...outputSchema, type: 'object' } }),
  };
}

function toResource(item: Item): ResourceSummaryDto | null {
  const { name, uri, ...rest } = texts(item, 'name', 'uri', 'description', 'mimeType');
  return name === undefined || uri === undefined ? null : { name, uri, ...rest };
}

function toPrompt(item: Item): PromptSummaryDto | null {
  const { name, ...rest } = texts(item, 'name', 'description');
  if (name === undefined) return null;
  const given = item.arguments;
  return { name, ...rest, ...(Array.isArray(given) && { arguments: given.flatMap(toArgument) }) };
}

function toArgument(item: unknown): PromptArgumentDto[] {
  if (!isObject(item)) return [];
  const { name, ...rest } = texts(item, 'name', 'description');
  if (name === undefined) return [];
  return [{ name, ...rest, ...(typeof item.required === 'boolean' && { required: item.required }) }];
}

/** A server as lists read it, with its namespace and its icon. */
export interface ListedRow extends IconOrigin {
  id: string;
  namespace: string;
  name: string;
  displayName: string;
  description: string;
  verified: boolean;
  useCount: string;
  currentType: ReleaseType | null;
  createdAt: Date;
  homepage: string | null;
  owner: string;
}

/** @param score how well it fits the search; null without one */
export function toServerSummaryDto(row: ListedRow, score: number | null, links: ServerUrlsService): ServerSummaryDto {
  return {
    id: row.id,
    qualifiedName: formatQualifiedName(row),
    namespace: row.namespace,
    slug: row.name,
    displayName: row.displayName,
    description: row.description,
    iconUrl: links.icon(row, row),
    verified: row.verified,
    useCount: Number(row.useCount),
    remote: row.currentType === null ? null : isRemote(row.currentType),
    isDeployed: row.currentType !== null,
    createdAt: row.createdAt.toISOString(),
    homepage: row.homepage ?? links.record(row),
    bySmithery: false,
    owner: row.owner,
    score,
  };
}

export function toDomainDto(server: Server, links: ServerUrlsService): ServerDomainDto {
  return {
    id: 'managed',
    type: 'managed',
    hostname: links.runHost,
    subdomain: server.slug,
    url: links.run(server.slug),
    createdAt: server.createdAt.toISOString(),
    updatedAt: (server.slugChangedAt ?? server.createdAt).toISOString(),
  };
}

/** Null: nothing was said, so the defaults hold. */
export function toServerRuntimeDto(row: ServerRuntime | null): ServerRuntimeDto {
  return { egressAllow: row?.egressAllow ?? null, logPayloads: row?.logPayloads ?? false };
}
