import { Injectable } from '@nestjs/common';
import { Tuning } from '../../config/tuning.js';
import { ProcessRegistry } from '../../platform/processes/process-registry.js';
import { HostAwayError, HostingUnavailableError, type HostedFailure } from '../hosting.errors.js';
import type { ProgramRef } from '../hosting.types.js';
import { HostDirectory, type LiveHost } from './host-directory.js';
import { Placements } from './placements.js';
import type { Placement } from './placements.repository.js';

const NO_HOST = 'No process of this service runs hosted code: start one with the role `host`.';

export interface Choosing {
  /** Hosts that did not accept the request. */
  excluded: ReadonlySet<string>;
  mayRunHere: boolean;
}

/**
 * Chooses the host of a program.
 *
 * A stateless program runs on the first host of its order ({@link ranked}), even when this process is a host: the hop
 * costs 0.3 to 0.5 ms (`node bench/hosting-hop.mjs`), a second copy 23 MB and a start of 80 ms.
 *
 * A stateful program runs on the host of its placement. Without one, the first host with the data folder of its state
 * gets it, or, if there is none, any other host, where it starts empty.
 */
@Injectable()
export class HostSelector {
  constructor(
    private readonly hostDirectory: HostDirectory,
    private readonly placements: Placements,
    private readonly processRegistry: ProcessRegistry,
    private readonly tuning: Tuning,
  ) {}

  /**
   * @returns null for this process
   * @throws HostedFailure when no host is available, and the database's error
   */
  async choose(ref: ProgramRef, choosing: Choosing): Promise<LiveHost | null> {
    if (ref.isStateful) return this.chooseWithState(ref, choosing);
    const hosts = await this.offering(ref, choosing).catch((error: unknown) => {
      // Without the database this process still runs stateless programs.
      if (choosing.mayRunHere) return [];
      throw error;
    });
    const [first] = this.inOrder(ref, hosts, choosing);
    if (first) return first.id === this.processRegistry.id ? null : first;
    if (choosing.mayRunHere && choosing.excluded.size === 0) return null;
    throw await this.noHost(ref, hosts, choosing);
  }

  /**
   * Returns null when some host offers the engine; otherwise a message that explains why none does. @throws the
   * database's error
   */
  async whyNot(engine: ProgramRef['engine']): Promise<string | null> {
    const hosts = await this.hostDirectory.live();
    const reachable = hosts.filter(({ id, url }) => url !== null || id === this.processRegistry.id);
    if (reachable.some(({ engines }) => engines[engine] === null)) return null;
    if (hosts.length > 0 && reachable.length === 0) return unreachable().message;
    return reachable[0]?.engines[engine] ?? NO_HOST;
  }

  private async chooseWithState(ref: ProgramRef, choosing: Choosing): Promise<LiveHost | null> {
    const placement = await this.placementOf(ref.ownerId);
    const hostId = placement?.hostId;
    if (hostId) {
      if (choosing.excluded.has(hostId)) throw this.awayError();
      if (hostId === this.processRegistry.id) return null;
      const host = await this.hostOf(hostId);
      if (!host) throw this.awayError();
      if (host.url === null) throw unreachable();
      return host;
    }
    const hosts = await this.offering(ref, choosing);
    const local = hosts.filter(({ dataId }) => dataId === placement?.dataId);
    const remote = hosts.filter(({ dataId }) => dataId !== placement?.dataId);
    const [first] = [...this.inOrder(ref, local, choosing), ...this.inOrder(ref, remote, choosing)];
    if (!first) throw await this.noHost(ref, hosts, choosing);
    return first.id === this.processRegistry.id ? null : first;
  }

  /** Returns the placement from the cache, and reads it again when it names no live host. */
  private async placementOf(ownerId: string): Promise<Placement | null> {
    const placement = await this.placements.find(ownerId);
    if (!placement?.hostId || placement.hostId === this.processRegistry.id || (await this.hostOf(placement.hostId)))
      return placement;
    this.hostDirectory.forget();
    this.placements.forgetCached(ownerId);
    return this.placements.find(ownerId);
  }

  private async hostOf(id: string): Promise<LiveHost | undefined> {
    return (await this.hostDirectory.live()).find((host) => host.id === id);
  }

  private async offering({ engine }: ProgramRef, { mayRunHere }: Choosing): Promise<LiveHost[]> {
    const ownId = this.processRegistry.id;
    const hosts = await this.hostDirectory.live();
    return hosts.filter(
      ({ id, url, engines }) => engines[engine] === null && (id === ownId ? mayRunHere : url !== null),
    );
  }

  private inOrder({ ownerId }: ProgramRef, hosts: LiveHost[], { excluded }: Choosing): LiveHost[] {
    const order = ranked(ownerId, hosts).filter(({ id }) => !excluded.has(id));
    const reached = order.filter(({ id }) => !this.hostDirectory.isSuspect(id));
    return [...reached, ...order.filter((host) => !reached.includes(host))];
  }

  private async noHost({ engine }: ProgramRef, hosts: LiveHost[], { excluded }: Choosing): Promise<HostedFailure> {
    if (hosts.length > 0 || excluded.size > 0) return this.awayError();
    return new HostingUnavailableError((await this.whyNot(engine)) ?? NO_HOST);
  }

  private awayError(): HostAwayError {
    const seconds = Math.ceil(this.tuning.runtimeLeaseMs / 1000);
    return new HostAwayError(
      `The process that runs this program does not answer; another one takes over within ${seconds} s: try again then.`,
      seconds,
    );
  }
}

function unreachable(): HostingUnavailableError {
  return new HostingUnavailableError(
    'The process that runs this program does not say where it is reached: set ADVERTISE_URL for it.',
  );
}

/**
 * Orders hosts by rendezvous hashing: the weight of a host is a hash of both ids, the highest comes first. When one of
 * n hosts joins or leaves, 1 in n programs moves.
 */
export function ranked<Host extends { id: string }>(ownerId: string, hosts: readonly Host[]): Host[] {
  return hosts
    .map((host) => ({ host, weight: weightOf(`${ownerId} ${host.id}`) }))
    .sort((a, b) => b.weight - a.weight || (a.host.id < b.host.id ? -1 : 1))
    .map(({ host }) => host);
}

/** Returns 32 bits of FNV-1a and the finalizer of MurmurHash3, which spreads names that differ in one character. */
function weightOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
