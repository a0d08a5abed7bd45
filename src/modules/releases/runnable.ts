import { parseUrl } from '../../config/parse-url.js';
import type { RunnableServer } from '../servers/server.types.js';
import { compileConfig, type CompiledConfig } from './config-map.js';

/** A release that can be called. */
export interface RunnableRelease {
  id: string;
  upstream: URL;
  config: CompiledConfig;
}

/** A server, made ready to be called. */
export interface Runnable {
  serverId: string;
  /** Its qualified name. */
  name: string;
  slug: string;
  /** Arguments and results are recorded too. */
  logPayloads: boolean;
  /** The current release, or a sentence that says why it cannot be called. */
  release: RunnableRelease | { id: string | null; reason: string };
}

/** What calls need of a server, worked out once for many of them. */
export function toRunnable({ id, namespace, name, slug, logPayloads, current }: RunnableServer): Runnable {
  const qualifiedName = name === '' ? namespace : `${namespace}/${name}`;
  return { serverId: id, name: qualifiedName, slug, logPayloads, release: releaseOf(qualifiedName, current) };
}

function releaseOf(name: string, current: RunnableServer['current']): Runnable['release'] {
  const path = `/servers/${encodeURIComponent(name)}`;
  if (!current) {
    const reason = `The server ${name} has no successful release yet: its owner publishes one with PUT ${path}/releases.`;
    return { id: null, reason };
  }
  const { releaseId: id, type, upstreamUrl, configSchema } = current;
  switch (type) {
    case 'stdio':
      return {
        id,
        reason: `The server ${name} is a bundle: download it with GET ${path}/download and run it where its client runs.`,
      };
    case 'hosted_shttp':
      return { id, reason: `The server ${name} is hosted code, and hosting is not enabled on this service.` };
    case 'external_shttp': {
      const upstream = parseUrl(upstreamUrl ?? '');
      if (!upstream) return { id, reason: `The current release of ${name} has no URL to call: publish it again.` };
      const config = compileConfig({ properties: {}, ...configSchema, type: 'object' }, 'external');
      return { id, upstream, config };
    }
  }
}
