import { parseUrl } from '../../config/parse-url.js';
import type { ProgramRef } from '../../hosting/hosting.types.js';
import type { RunnableServer } from '../servers/server.types.js';
import { configFields, type ConfigField, type ConfigKind } from '../releases/config/config-fields.js';
import { hostedAddress } from '../../hosting/mcp/hosted-channels.service.js';
import { bundleProgram, releaseProgram } from '../releases/program-ref.js';

/** A release that can be called. */
export interface ResolvedRelease {
  id: string;
  /** For hosted code an address under `.invalid`. */
  upstream: URL;
  config: readonly ConfigField[];
  /** The hosted code; null for a server that runs elsewhere. */
  program: ProgramRef | null;
  /**
   * The resource that tokens from the code's auth adapter (`createAuthAdapter`) are stored for: an address under
   * `.invalid`, the same for all releases. Null without an auth adapter.
   */
  authAddress: URL | null;
}

/** A server that is ready to be called. */
export interface ResolvedServer {
  serverId: string;
  /** Its qualified name. */
  name: string;
  slug: string;
  /** Arguments and results are recorded too. */
  logPayloads: boolean;
  /** The current release, or a sentence with the reason why it cannot be called. */
  release: ResolvedRelease | { id: string | null; reason: string };
}

/** Prepares a server for calls. @param runsBundles true if this service runs bundles */
export function toResolvedServer(server: RunnableServer, runsBundles: boolean): ResolvedServer {
  const { id, namespace, name, slug, logPayloads, current } = server;
  const qualifiedName = name === '' ? namespace : `${namespace}/${name}`;
  const release = releaseOf(qualifiedName, id, current, runsBundles);
  return { serverId: id, name: qualifiedName, slug, logPayloads, release };
}

function releaseOf(
  name: string,
  serverId: string,
  current: RunnableServer['current'],
  runsBundles: boolean,
): ResolvedServer['release'] {
  const path = `/servers/${encodeURIComponent(name)}`;
  if (!current) {
    const reason = `The server ${name} has no successful release yet: its owner publishes one with PUT ${path}/releases.`;
    return { id: null, reason };
  }
  const { releaseId: id, type, upstreamUrl, hosted } = current;
  const configFor = (kind: ConfigKind) =>
    configFields({ properties: {}, ...current.configSchema, type: 'object' }, kind);
  switch (type) {
    case 'stdio': {
      if (runsBundles) {
        const program = bundleProgram(id, serverId);
        return { id, upstream: hostedAddress(program, '/'), config: configFor('hosted'), program, authAddress: null };
      }
      const reason = `The server ${name} is a bundle: download it with GET ${path}/download and run it where its client runs.`;
      return { id, reason };
    }
    case 'hosted_shttp': {
      if (!hosted) return { id, reason: `The current release of ${name} was never run here: publish it again.` };
      const program = releaseProgram(id, serverId, hosted.isStateful);
      const authAddress = hosted.hasAuthAdapter ? new URL(`https://${serverId}.hosted.invalid/`) : null;
      const upstream = hostedAddress(program, hosted.mcpPath);
      return { id, upstream, config: configFor('hosted'), program, authAddress };
    }
    case 'external_shttp': {
      const upstream = parseUrl(upstreamUrl ?? '');
      if (!upstream) return { id, reason: `The current release of ${name} has no URL to call: publish it again.` };
      return { id, upstream, config: configFor('external'), program: null, authAddress: null };
    }
  }
}
