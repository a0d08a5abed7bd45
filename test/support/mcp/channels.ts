import type { Channel } from '../../../src/mcp/protocol/channel.js';
import { HttpChannels } from '../../../src/mcp/client/http/http-channel.js';
import type { HttpTarget } from '../../../src/mcp/client/http/http-wire.js';
import { EraMemory } from '../../../src/mcp/eras/era-memory.js';
import type { EraVerdict } from '../../../src/mcp/eras/era.repository.js';
import type { Egress } from '../../../src/platform/egress/egress.js';

/** Channels of a process that remembers eras for itself alone. */
export function channelsOn(egress: Egress): HttpChannels {
  const stored = new Map<string, EraVerdict>();
  return new HttpChannels(
    egress,
    new EraMemory({
      read: async (endpoint) => stored.get(endpoint) ?? null,
      write: async (endpoint, verdict) => void stored.set(endpoint, verdict),
      forget: async (endpoint) => void stored.delete(endpoint),
    }),
    { encryptionKeys: null },
  );
}

/** A channel without headers to this URL, in such a process of its own. */
export function channelTo(egress: Egress, url: string, target: Partial<HttpTarget> = {}): Channel {
  return channelsOn(egress).channelTo({ url: new URL(url), headers: {}, connectTimeoutMs: 20_000, ...target });
}
