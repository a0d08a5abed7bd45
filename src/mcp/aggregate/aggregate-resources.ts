import type { McpReply, UpstreamListener } from '../protocol/channel.js';
import { elements, members as membersOf, slice, splice } from '../protocol/json-text.js';
import { RESOURCE_UPDATED } from '../protocol/list-pages.js';
import { qualifyUri, readUri } from './member-names.js';
import { withMember } from './aggregate-lists.js';
import type { AggregateSource } from './member-requests.js';

const LISTEN_TIMEOUT_MS = 5_000;

/** What was read, under the URIs it was asked for by. */
export function withQualifiedContents(reply: McpReply, connectionId: string): McpReply {
  if (!reply.result) return reply;
  const result = slice(reply.text, reply.result);
  const contents = result.startsWith('{') ? membersOf(result).get('contents') : undefined;
  if (!contents || result[contents[0]] !== '[') return reply;
  const items = elements(result, contents[0]).map((span) => withQualifiedUri(slice(result, span), connectionId));
  const text = splice(reply.text, reply.result, splice(result, contents, `[${items.join(',')}]`));
  const parts = membersOf(text);
  return { ...reply, text, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
}

/** Hears of changes of resources from the connections they belong to. Those that fail honour nothing. */
export async function listenToResources(
  source: AggregateSource,
  uris: string[],
  listener: UpstreamListener,
): Promise<{ uris: string[]; close: () => Promise<void> }> {
  const own = await Promise.all(groups(uris).map(([connectionId, rest]) => hear(source, connectionId, rest, listener)));
  return {
    uris: own.flatMap((one) => one.uris),
    close: async () => {
      await Promise.all(own.map((one) => one.close()));
    },
  };
}

async function hear(
  source: AggregateSource,
  connectionId: string,
  uris: string[],
  listener: UpstreamListener,
): Promise<{ uris: string[]; close: () => Promise<void> }> {
  const own: UpstreamListener = {
    onNotification: (text, method) => {
      if (method !== RESOURCE_UPDATED) return;
      const params = membersOf(text).get('params');
      listener.onNotification(
        params ? splice(text, params, withQualifiedUri(slice(text, params), connectionId)) : text,
        method,
      );
    },
    onEnd: () => undefined,
  };
  try {
    const link = await source.link(connectionId);
    const listening = await link.listen({ resourceSubscriptions: uris }, own, LISTEN_TIMEOUT_MS);
    const honoured = listening.honoured.resourceSubscriptions ?? [];
    return { uris: honoured.map((uri) => qualifyUri(connectionId, uri)), close: () => listening.close() };
  } catch (error) {
    // Throws what says nothing of the connection.
    source.faultOf(connectionId, error);
    return { uris: [], close: async () => undefined };
  }
}

/** URIs by the connection they belong to. */
function groups(uris: string[]): [connectionId: string, uris: string[]][] {
  const found = new Map<string, string[]>();
  for (const uri of uris) {
    const read = readUri(uri);
    if (read) found.set(read.connectionId, [...(found.get(read.connectionId) ?? []), read.rest]);
  }
  return [...found];
}

/** An object's JSON text with its `uri` as it is in the union. */
function withQualifiedUri(text: string, connectionId: string): string {
  const span = text.startsWith('{') ? membersOf(text).get('uri') : undefined;
  const own: unknown = span && JSON.parse(slice(text, span));
  return typeof own === 'string' ? withMember(text, 'uri', qualifyUri(connectionId, own)) : text;
}
