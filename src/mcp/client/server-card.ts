import { storableFault } from '../../platform/database/storable.js';
import type { Egress } from '../../platform/egress/egress.js';
import { discard, follow, readWithin } from '../../platform/egress/follow.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { ServerInfo } from '../protocol/protocol.js';
import { isObject } from '../../platform/text/json.js';

/** Where servers publish their card, at their origin. */
const CARD_PATH = '/.well-known/mcp/server-card.json';

const CARD_BYTES_MAX = 1024 * 1024;
const REDIRECTS_MAX = 3;

/** What a release may have of each kind; a live server is held to the same. */
const ITEMS_MAX = 1_000;

/**
 * What a server says of itself without being asked over MCP: a document it publishes, or what a client sends along with a
 * release. Members nobody knows stay.
 */
export interface ServerCard {
  serverInfo: ServerInfo & Record<string, unknown>;
  /** Each has a `name`; `inputSchema` is often missing. */
  tools?: Record<string, unknown>[];
  /** Each has `name` and `uri`. */
  resources?: Record<string, unknown>[];
  /** Each has `name` and `uriTemplate`. */
  resourceTemplates?: Record<string, unknown>[];
  /** Each has a `name`; `arguments` are objects with a `name`. */
  prompts?: Record<string, unknown>[];
  [member: string]: unknown;
}

/** The lists of a card, with what each item must have. */
const lists = {
  tools: ['name'],
  resources: ['name', 'uri'],
  resourceTemplates: ['name', 'uriTemplate'],
  prompts: ['name'],
} as const;

/**
 * The card a server publishes at `{origin}/.well-known/mcp/server-card.json`; null when there is none, it is no card, or
 * it cannot be had: unreachable, refused by the egress policy, larger than 1 MB, too late. Redirects are followed within
 * the origin only, so that the card is the server's own. Never rejects.
 *
 * @param timeoutMs for everything together
 */
export async function fetchServerCard(
  egress: Egress,
  upstreamUrl: string | URL,
  { timeoutMs }: { timeoutMs: number },
): Promise<ServerCard | null> {
  try {
    const text = await fetchText(egress, new URL(CARD_PATH, egress.check(upstreamUrl)), AbortSignal.timeout(timeoutMs));
    return text === null ? null : parseServerCard(JSON.parse(text));
  } catch {
    return null;
  }
}

async function fetchText(egress: Egress, start: URL, signal: AbortSignal): Promise<string | null> {
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
  const options = { headers, signal, redirectsMax: REDIRECTS_MAX, sameOrigin: true };
  const { answer } = await follow(egress, start, options);
  if (answer.statusCode === 200) {
    const bytes = await readWithin(answer.body, CARD_BYTES_MAX);
    return bytes && bytes.toString('utf8').replace(/^\uFEFF/, '');
  }
  discard(answer.body);
  return null;
}

/**
 * A server card from what a client sent, checked only as far as Slipway reads it: published clients copy it from bundle
 * manifests, whose tools have no schemas and whose prompts' arguments are plain strings (these become `{name}`). A list
 * that is null counts as absent.
 *
 * @throws InvalidInputError saying which part is wrong, `serverCard.tools.0.name must be a string`
 */
export function parseServerCard(value: unknown): ServerCard {
  const card = requireObject(value, 'serverCard');
  const fault = storableFault(card);
  if (fault !== null) throw new InvalidInputError(`serverCard ${fault}`);
  const parsed: Record<string, unknown> = { ...card, serverInfo: parseServerInfo(card.serverInfo) };
  for (const [member, required] of Object.entries(lists)) {
    if (parsed[member] === undefined || parsed[member] === null) delete parsed[member];
    else parsed[member] = parseList(parsed[member], `serverCard.${member}`, required);
  }
  return parsed as ServerCard;
}

function parseServerInfo(value: unknown): ServerCard['serverInfo'] {
  const info = requireObject(value, 'serverCard.serverInfo');
  for (const member of ['name', 'version']) requireText(info[member], `serverCard.serverInfo.${member}`);
  for (const member of ['title', 'description', 'websiteUrl']) {
    requireOptional(info[member], 'string', `serverCard.serverInfo.${member}`);
  }
  return info as ServerCard['serverInfo'];
}

function parseList(value: unknown, path: string, required: readonly string[]): Record<string, unknown>[] {
  if (!Array.isArray(value)) throw new InvalidInputError(`${path} must be an array`);
  if (value.length > ITEMS_MAX) throw new InvalidInputError(`${path} must have at most ${ITEMS_MAX} items`);
  return value.map((one, at) => parseItem(one, `${path}.${at}`, required));
}

function parseItem(value: unknown, path: string, required: readonly string[]): Record<string, unknown> {
  const item = requireObject(value, path);
  for (const member of required) requireText(item[member], `${path}.${member}`);
  for (const member of ['title', 'description', 'mimeType']) {
    requireOptional(item[member], 'string', `${path}.${member}`);
  }
  for (const member of ['inputSchema', 'outputSchema']) {
    requireOptional(item[member], 'object', `${path}.${member}`);
  }
  if (!path.startsWith('serverCard.prompts.') || item.arguments === undefined || item.arguments === null) return item;
  return { ...item, arguments: parseArguments(item.arguments, `${path}.arguments`) };
}

function parseArguments(value: unknown, path: string): Record<string, unknown>[] {
  if (!Array.isArray(value)) throw new InvalidInputError(`${path} must be an array`);
  return value.map((one, at) => {
    const argument = typeof one === 'string' ? { name: one } : requireObject(one, `${path}.${at}`);
    requireText(argument.name, `${path}.${at}.name`);
    return argument;
  });
}

function requireObject(value: unknown, path: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new InvalidInputError(`${path} must be an object`);
}

function requireText(value: unknown, path: string): void {
  if (typeof value !== 'string') throw new InvalidInputError(`${path} must be a string`);
  if (value === '') throw new InvalidInputError(`${path} must not be empty`);
}

/** Null counts as absent: generators write it for what they do not know. */
function requireOptional(value: unknown, type: 'string' | 'object', path: string): void {
  if (value === undefined || value === null) return;
  if (type === 'string' ? typeof value === 'string' : isObject(value)) return;
  throw new InvalidInputError(`${path} must be ${type === 'string' ? 'a string' : 'an object'}`);
}
