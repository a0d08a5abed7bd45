/**
 * The company's own network, as `HOSTING_EGRESS_ALLOW` opens it to hosted code: Slipway connects to a private address
 * if that list has it and the server's `egressAllow` names the host with its port.
 *
 * These stay closed, whatever the list contains: link-local addresses, the metadata services of clouds, and addresses
 * of translators and tunnels; the port of this service and of requests between processes at every address that is not
 * public, since other processes listen there too; and Postgres, Redis, S3 and the collector of traces at their
 * addresses. A service whose name was not resolved yet has its port closed at every address that is not public.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Env } from '../../config/env.js';
import {
  addressKind,
  AddressPolicy,
  canonicalAddress,
  parseEgressAllow,
  type AddressKind,
} from '../../platform/egress/address-policy.js';
import { isLocalAddress, type ClosedPorts } from '../../platform/egress/egress.js';
import { servicePort } from '../../platform/egress/egress.module.js';

export interface InternalRoutes {
  policy: AddressPolicy;
  closedPorts: ClosedPorts;
}

const ADDRESSES_KEPT_MS = 60_000;

/** Addresses of translators and tunnels carry another address, which may be one of Slipway's own services. */
const NEVER_OPEN: ReadonlySet<AddressKind> = new Set(['link-local', 'cloud metadata', 'NAT64', '6to4', 'Teredo']);

type OwnServices = Pick<
  Env,
  | 'port'
  | 'advertiseUrl'
  | 'worker'
  | 'databaseUrl'
  | 'redisUrl'
  | 'blobUrl'
  | 'otelEndpoint'
  | 'otelTracesEndpoint'
  | 'otelLogsEndpoint'
>;

export function internalRoutes(env: OwnServices & Pick<Env, 'hostingEgressAllow'>): InternalRoutes | null {
  const rules = parseEgressAllow(env.hostingEgressAllow, 'HOSTING_EGRESS_ALLOW');
  return rules.length === 0 ? null : { policy: new AddressPolicy(rules, NEVER_OPEN), closedPorts: closedPortsOf(env) };
}

function closedPortsOf(env: OwnServices): ClosedPorts {
  const closed = new Map<number, (address: string) => boolean>();
  const close = (port: number, isClosed: (address: string) => boolean) => {
    const previous = closed.get(port);
    closed.set(port, previous ? (address) => previous(address) || isClosed(address) : isClosed);
  };
  const { databaseUrl, redisUrl, blobUrl, otelEndpoint, otelTracesEndpoint, otelLogsEndpoint } = env;
  for (const text of [databaseUrl, redisUrl, blobUrl, otelEndpoint, otelTracesEndpoint, otelLogsEndpoint]) {
    if (text === null) continue;
    const url = new URL(text);
    if (url.hostname !== '') close(servicePort(url), addressesOf(url.hostname.replace(/^\[|\]$/g, '')));
  }
  for (const port of [env.port, ...(env.worker?.internalPorts ?? [])]) close(port, isInternal);
  if (env.advertiseUrl !== null) close(servicePort(new URL(env.advertiseUrl)), isInternal);
  return closed;
}

function isInternal(address: string): boolean {
  return addressKind(address) !== 'public';
}

/** Returns a test for addresses of a host, whose name is resolved again every minute while the test is used. */
function addressesOf(host: string): (address: string) => boolean {
  if (isIP(host) !== 0) {
    const canonical = canonicalAddress(host);
    return (address) => canonicalAddress(address) === canonical || isLocalAddress(address);
  }
  let addresses: ReadonlySet<string> | null = null;
  let resolvedAt = -Infinity;
  const resolve = () => {
    resolvedAt = performance.now();
    lookup(host, { all: true }).then(
      (resolved) => (addresses = new Set(resolved.map(({ address }) => canonicalAddress(address)))),
      // Previously known addresses stay closed; if none is known, all internal ones do.
      () => undefined,
    );
  };
  resolve();
  return (address) => {
    if (performance.now() - resolvedAt > ADDRESSES_KEPT_MS) resolve();
    return isLocalAddress(address) || (addresses?.has(canonicalAddress(address)) ?? isInternal(address));
  };
}
