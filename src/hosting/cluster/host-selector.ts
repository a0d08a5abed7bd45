import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { HostAwayError, HostingUnavailableError, type HostedFailure } from '../hosting.errors.js';
import type { ProgramRef } from '../hosting.types.js';
import { HostDirectory, type LiveHost } from './host-directory.js';
import { HostLease } from './host-lease.js';
import { Placements, type Placement } from './placements.js';
import { ranked } from './rendezvous.js';

const NOBODY = 'No process of this service runs hosted code: start one with the role `host`.';

/** What is known of a request whose place is to be chosen. */
export interface Choosing {
  /** Hosts that did not take it. */
  passedOver: ReadonlySet<string>;
  /** This process runs programs and goes on doing so. */
  mayRunHere: boolean;
}

/**
 * Where a program runs.
 *
 * Without state: on the first host of its order ({@link ranked}), also when this process is a host itself. A preference for
 * this one would save the hop (0.3 to 0.5 ms, `node bench/hosting-hop.mjs`), and cost the memory and the start of a second
 * copy of every program (23 MB and 80 ms each): with two processes nothing would be shared any more.
 *
 * With state: on the host that has it; while none has, on the first that shares the data folder in which its state lies,
 * and only without one on any other, where it starts empty.
 */
@Injectable()
export class HostSelector {
  constructor(
    private readonly directory: HostDirectory,
    private readonly placements: Placements,
    private readonly lease: HostLease,
    private readonly env: Env,
  ) {}

  /**
   * @returns null for this very process
   * @throws HostedFailure when nobody can take it, and what the database says
   */
  async choose(ref: ProgramRef, choosing: Choosing): Promise<LiveHost | null> {
    if (ref.isStateful) return this.chooseWithState(ref, choosing);
    const hosts = await this.offering(ref, choosing).catch((error: unknown) => {
      // One without state may run anywhere: a database that is away is no reason not to.
      if (choosing.mayRunHere) return [];
      throw error;
    });
    const [first] = this.inOrder(ref, hosts, choosing);
    if (first) return first.id === this.lease.id ? null : first;
    if (choosing.mayRunHere && choosing.passedOver.size === 0) return null;
    throw await this.nobody(ref, hosts, choosing);
  }

  /** Null when some host offers the engine; otherwise a sentence why none does. @throws what the database says */
  async whyNot(engine: ProgramRef['engine']): Promise<string | null> {
    const hosts = await this.directory.live();
    const reachable = hosts.filter(({ id, url }) => url !== null || id === this.lease.id);
    if (reachable.some(({ engines }) => engines[engine] === null)) return null;
    if (hosts.length > 0 && reachable.length === 0) return unreachable().message;
    return reachable[0]?.engines[engine] ?? NOBODY;
  }

  private async chooseWithState(ref: ProgramRef, choosing: Choosing): Promise<LiveHost | null> {
    const placement = await this.placementOf(ref.ownerId);
    if (placement?.hostId) return this.holder(placement.hostId, choosing);
    const hosts = await this.offering(ref, choosing);
    const near = hosts.filter(({ dataId }) => dataId === placement?.dataId);
    const far = hosts.filter(({ dataId }) => dataId !== placement?.dataId);
    const [first] = [...this.inOrder(ref, near, choosing), ...this.inOrder(ref, far, choosing)];
    if (!first) throw await this.nobody(ref, hosts, choosing);
    return first.id === this.lease.id ? null : first;
  }

  /** What is known of its place; read anew when the host is none any more, or none yet. */
  private async placementOf(ownerId: string): Promise<Placement | null> {
    const known = await this.placements.find(ownerId);
    if (!known?.hostId || known.hostId === this.lease.id || (await this.hostOf(known.hostId))) return known;
    this.directory.forget();
    this.placements.forgetCached(ownerId);
    return this.placements.find(ownerId);
  }

  private async holder(id: string, { passedOver }: Choosing): Promise<LiveHost | null> {
    if (passedOver.has(id)) throw this.away();
    if (id === this.lease.id) return null;
    const host = await this.hostOf(id);
    if (!host) throw this.away();
    if (host.url === null) throw unreachable();
    return host;
  }

  private async hostOf(id: string): Promise<LiveHost | undefined> {
    return (await this.directory.live()).find((host) => host.id === id);
  }

  /** The hosts that run such programs and can be reached from here. */
  private async offering({ engine }: ProgramRef, { mayRunHere }: Choosing): Promise<LiveHost[]> {
    const own = this.lease.id;
    const hosts = await this.directory.live();
    return hosts.filter(({ id, url, engines }) => engines[engine] === null && (id === own ? mayRunHere : url !== null));
  }

  private inOrder({ ownerId }: ProgramRef, hosts: LiveHost[], { passedOver }: Choosing): LiveHost[] {
    const order = ranked(ownerId, hosts).filter(({ id }) => !passedOver.has(id));
    const sound = order.filter(({ id }) => !this.directory.isSuspect(id));
    return [...sound, ...order.filter((host) => !sound.includes(host))];
  }

  private async nobody({ engine }: ProgramRef, hosts: LiveHost[], { passedOver }: Choosing): Promise<HostedFailure> {
    if (hosts.length > 0 || passedOver.size > 0) return this.away();
    return new HostingUnavailableError((await this.whyNot(engine)) ?? NOBODY);
  }

  private away(): HostAwayError {
    const seconds = Math.ceil(this.env.runtimeLeaseMs / 1000);
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
