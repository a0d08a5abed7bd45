import { storableFault } from '../../platform/database/storable.js';
import type { Egress } from '../../platform/egress/egress.js';
import { discard, follow, readWithin } from '../../platform/egress/follow.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { ServerInfo } from '../protocol/protocol.js';
import { isObject, withoutBom } from '../../platform/text/json.js';
import { parseBounded } from '../../platform/text/json-bounds.js';

const CARD_PATH = '/.well-known/mcp/server-card.json';

const CARD_BYTES_MAX = 1024 * 1024;
const REDIRECTS_MAX = 3;

/** Limit of items per list. A larger list is rejected instead of cut, because unscanned items would still be served. */
export const ITEMS_MAX = 1_000;

/** A card that the server publishes, or that is sent with a release. Unknown fields are preserved. */
export interface ServerCard {
  serverInfo: ServerInfo & Record<string, unknown>;
  /** Tools, each with a `name`; `inputSchema` is often missing. */
  tools?: Record<string, unknown>[];
  /** Resources, each with `name` and `uri`. */
  resources?: Record<string, unknown>[];
  /** Resource templates, each with `name` and `uriTemplate`. */
  resourceTemplates?: Record<string, unknown>[];
  /** Prompts, each with a `name`; `arguments` are objects with a `name`. */
  prompts?: Record<string, unknown>[];
  [member: string]: unknown;
}

const lists = {
  tools: ['name'],
  resources: ['name', 'uri'],
  resourceTemplates: ['name', 'uriTemplate'],
  prompts: ['name'],
} as const;

/**
 * Reads `{origin}/.well-known/mcp/server-card.json`. Returns null when there is no card, it is invalid, or it cannot be
 * fetched: unreachable, blocked by the egress policy, larger than 1 MB, or timed out. Follows redirects within the
 * origin only, so that the card is the server's own. The promise never rejects.
 */
export async function fetchServerCard(
  egress: Egress,
  upstreamUrl: string | URL,
  { timeoutMs }: { timeoutMs: number },
): Promise<ServerCard | null> {
  try {
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
    const signal = AbortSignal.timeout(timeoutMs);
    const options = { headers, signal, redirectsMax: REDIRECTS_MAX, sameOrigin: true };
    const { answer } = await follow(egress, new URL(CARD_PATH, egress.check(upstreamUrl)), options);
    if (answer.statusCode !== 200) {
      discard(answer.body);
      return null;
    }
    const bytes = await readWithin(answer.body, CARD_BYTES_MAX);
    return bytes && parseServerCard(parseBounded(withoutBom(bytes.toString('utf8'))));
  } catch {
    return null;
  }
}

/**
 * Validates only members that Slipway reads: published clients copy cards from bundle manifests, whose tools have no
 * schemas and whose prompt arguments are plain strings (converted to `{name}`). A null list is treated as absent.
 *
 * @throws InvalidInputError naming the invalid member, such as `serverCard.tools.0.name must be a string`
 */
export function parseServerCard(value: unknown): ServerCard {
  const card = requireObject(value, 'serverCard');
  const fault = storableFault(card);
  if (fault !== null) throw new InvalidInputError(`serverCard ${fault}`);
  const serverInfo = requireObject(card.serverInfo, 'serverCard.serverInfo');
  for (const member of ['name', 'version']) requireText(serverInfo[member], `serverCard.serverInfo.${member}`);
  for (const member of ['title', 'description', 'websiteUrl']) {
    requireOptional(serverInfo[member], 'string', `serverCard.serverInfo.${member}`);
  }
  const parsed: Record<string, unknown> = { ...card, serverInfo };
  for (const [member, required] of Object.entries(lists)) {
    if (parsed[member] === undefined || parsed[member] === null) delete parsed[member];
    else {
      const items = requireArray(parsed[member], `serverCard.${member}`);
      if (items.length > ITEMS_MAX) {
        throw new InvalidInputError(`serverCard.${member} must have at most ${ITEMS_MAX} items`);
      }
      parsed[member] = items.map((item, at) => parseItem(item, `serverCard.${member}.${at}`, required));
    }
  }
  return parsed as ServerCard;
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
  const args = requireArray(item.arguments, `${path}.arguments`).map((value, at) => {
    const argument = typeof value === 'string' ? { name: value } : requireObject(value, `${path}.arguments.${at}`);
    requireText(argument.name, `${path}.arguments.${at}.name`);
    return argument;
  });
  return { ...item, arguments: args };
}

function requireArray(value: unknown, path: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new InvalidInputError(`${path} must be an array`);
}

function requireObject(value: unknown, path: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new InvalidInputError(`${path} must be an object`);
}

function requireText(value: unknown, path: string): void {
  if (typeof value !== 'string') throw new InvalidInputError(`${path} must be a string`);
  if (value === '') throw new InvalidInputError(`${path} must not be empty`);
}

/** Checks an optional value. Null is treated as absent: generators write null for unknown values. */
function requireOptional(value: unknown, type: 'string' | 'object', path: string): void {
  if (value === undefined || value === null) return;
  if (type === 'string' ? typeof value === 'string' : isObject(value)) return;
  throw new InvalidInputError(`${path} must be ${type === 'string' ? 'a string' : 'an object'}`);
}
