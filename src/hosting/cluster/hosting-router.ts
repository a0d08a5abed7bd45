/**
 * Hosting for the whole service: sends each request to the process ("host") that runs its program, in this process or
 * by internal HTTP in another one. A request takes at most one such hop: the other host runs the program or rejects the
 * request.
 *
 * `HostSelector` chooses the host. A stopping host first stops its stateful programs and hands them over; requests wait
 * for that and go to the next host.
 *
 * A lost message (`hosting.current`, `hosting.forgotten`, `hosting.renewed`) does no harm: the next call names its
 * version, unused programs stop after 5 min, stateful programs whose placement was deleted stop within a third of a
 * lease, and values are compared every four leases (60 s by default).
 */
import {
  Inject,
  Injectable,
  Logger,
  Optional,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { ProcessRegistry, type LeaseHolder } from '../../platform/processes/process-registry.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { Hosting, LocalHosting } from '../hosting.js';
import { HostAwayError } from '../hosting.errors.js';
import type { EngineName, HostedRequest, ProgramRef } from '../hosting.types.js';
import { HostClient } from './host-client.js';
import { HostSelector } from './host-selector.js';
import { HostDirectory, type HostDetails } from './host-directory.js';
import { Placements } from './placements.js';
import { placementFailure, RetryingDispatch, type AttemptHandler, type Candidate } from './retrying-dispatch.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.current': { from: string; ref: ProgramRef };
    'hosting.forgotten': { from: string; ownerId: string };
    'hosting.renewed': { from: string; ownerId: string };
  }
}

/** Time for requests to stateful programs when this process stops; other requests wait for the next host meanwhile. */
const DRAIN_MS = 5_000;

@Injectable()
export class HostingRouter extends Hosting implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('hosting');
  private local: LocalHosting | null;
  private isStopping = false;
  /** Resolves when another host can run the stateful programs of this one, which is stopping. */
  private handedOver: Promise<void> = Promise.resolve();

  constructor(
    private readonly hostSelector: HostSelector,
    private readonly hostDirectory: HostDirectory,
    private readonly placements: Placements,
    private readonly processRegistry: ProcessRegistry,
    private readonly hostClient: HostClient,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    @Optional() @Inject(LocalHosting) localHosting?: LocalHosting,
  ) {
    super();
    this.local = localHosting ?? null;
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.current', ({ from, ref }) => {
      if (from !== this.processRegistry.id) void this.local?.current(ref);
    });
    await this.pubSub.subscribe('hosting.forgotten', ({ from, ownerId }) => {
      if (from !== this.processRegistry.id) void this.forgetHere(ownerId);
    });
    await this.pubSub.subscribe('hosting.renewed', ({ from, ownerId }) => {
      if (from !== this.processRegistry.id) void this.local?.renew(ownerId);
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.local) return;
    await this.processRegistry.join(this.holder);
    this.schedule.every('check for deleted programs', this.processRegistry.leaseMs / 3, async () => {
      for (const ownerId of await this.placements.takenAway()) await this.forgetHere(ownerId);
    });
  }

  async runWith(local: LocalHosting): Promise<void> {
    this.local = local;
    await this.processRegistry.beatNow();
    this.hostDirectory.changed();
  }

  /**
   * Stops stateful programs first: until then no other host can start them. Stateless ones run while requests drain.
   */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    if (this.local) await (this.handedOver = this.handOver(this.local));
  }

  private async handOver(local: LocalHosting): Promise<void> {
    await local.endStateful(DRAIN_MS);
    await this.placements.releaseAll().catch((error: unknown) => {
      this.logger.warn({ msg: 'the programs of this host were not released; its lease will end', err: error });
    });
    await this.processRegistry.removeHolder(this.holder);
    this.hostDirectory.changed();
  }

  dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void {
    new RetryingDispatch((excluded) => this.choose(ref, excluded), request, handler, this.onThrown).start();
  }

  /**
   * @param host the addressee; a request for another process is rejected, as is one to a stateful program with an
   * earlier epoch of this one. Stateless programs need no lease, which expires while the database is unavailable
   */
  receive(host: { id: string; epoch: string }, ref: ProgramRef, request: HostedRequest, handler: AttemptHandler): void {
    const isPast = ref.isStateful && host.epoch !== this.processRegistry.epoch;
    if (host.id !== this.processRegistry.id || isPast) handler.onResponseError(null, notHere());
    else this.runLocally(ref, request, handler);
  }

  async whyNot(engine: EngineName): Promise<string | null> {
    const here = this.local ? await this.local.whyNot(engine) : undefined;
    if (here === null) return null;
    const anywhere = await this.hostSelector.whyNot(engine);
    return anywhere === null ? null : (here ?? anywhere);
  }

  async current(ref: ProgramRef): Promise<void> {
    this.pubSub.publish('hosting.current', { from: this.processRegistry.id, ref });
    await this.local?.current(ref);
  }

  async renew(ownerId: string): Promise<void> {
    this.pubSub.publish('hosting.renewed', { from: this.processRegistry.id, ownerId });
    await this.local?.renew(ownerId);
  }

  async forget(ownerId: string): Promise<void> {
    await this.placements.remove(ownerId).catch((error: unknown) => {
      this.logger.warn({ msg: 'the placement of a deleted program was not deleted', err: error });
    });
    this.pubSub.publish('hosting.forgotten', { from: this.processRegistry.id, ownerId });
    await this.local?.forget(ownerId);
  }

  private readonly holder: LeaseHolder = {
    role: 'host',
    details: async (): Promise<HostDetails> => ({
      dataId: await this.placements.dataFolder.id(),
      engines: { worker: await this.whyNotHere('worker'), bundle: await this.whyNotHere('bundle') },
      livePrograms: this.local?.livePrograms() ?? {},
    }),
    registered: () => {
      this.hostDirectory.changed();
      void this.sweepState();
    },
    lost: async () => {
      this.logger.warn('the stateful programs of this process are stopped');
      this.placements.releasedAll();
      await this.local?.endStateful(0);
    },
  };

  private async whyNotHere(engine: EngineName): Promise<string | null> {
    return (await this.local?.whyNot(engine)) ?? null;
  }

  private async choose(ref: ProgramRef, excluded: ReadonlySet<string>): Promise<Candidate> {
    if (excluded.size > 0) {
      this.hostDirectory.forget();
      this.placements.forgetCached(ref.ownerId);
    }
    const mayRunHere = this.local !== null && !this.isStopping;
    const host = await this.hostSelector.choose(ref, { excluded, mayRunHere });
    if (host) {
      return {
        id: host.id,
        send: (request, handler) => this.hostClient.send(host, ref, request, handler),
        suspect: () => this.hostDirectory.markSuspect(host.id),
      };
    }
    return {
      id: this.processRegistry.id,
      send: (request, handler) => this.runLocally(ref, request, handler),
      suspect: () => undefined,
    };
  }

  private runLocally(ref: ProgramRef, request: HostedRequest, handler: AttemptHandler): void {
    const { local } = this;
    if (!local) return handler.onResponseError(null, notHere());
    if (!ref.isStateful) return local.dispatch(ref, request, handler);
    if (this.isStopping) return void this.refuse(handler);
    if (this.placements.isMine(ref.ownerId)) return local.dispatch(ref, request, handler);
    this.placements
      .claim(ref.ownerId, () => local.forget(ref.ownerId))
      .then(
        (isMine) => {
          if (isMine && !this.isStopping) local.dispatch(ref, request, handler);
          else return this.refuse(handler);
        },
        (error: unknown) => handler.onResponseError(null, placementFailure(error)),
      )
      .catch(this.onThrown);
  }

  /** Rejects a request when its sender can find the next host. */
  private async refuse(handler: AttemptHandler): Promise<void> {
    await this.handedOver.catch(this.onThrown);
    handler.onResponseError(null, notHere());
  }

  private readonly onThrown = (error: unknown): void => {
    this.logger.error({ msg: 'the caller of a program could not receive its response', err: error });
  };

  private async forgetHere(ownerId: string): Promise<void> {
    this.placements.released(ownerId);
    await this.local?.forget(ownerId);
  }

  private async sweepState(): Promise<void> {
    try {
      const owners = (await this.local?.ownersWithState()) ?? [];
      for (const ownerId of await this.placements.listObsolete(owners)) await this.local?.forget(ownerId);
    } catch (error) {
      this.logger.warn({ msg: 'the state of deleted programs was not removed', err: error });
    }
  }
}

function notHere(): HostAwayError {
  return new HostAwayError('Another process runs this program now: try again.', 1);
}
