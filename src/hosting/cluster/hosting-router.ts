import { randomUUID } from 'node:crypto';
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
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Hosting, LocalHosting } from '../hosting.js';
import { HostAwayError, HostingUnavailableError } from '../hosting.errors.js';
import type { EngineName, HostedRequest, ProgramRef } from '../hosting.types.js';
import { HostClient } from './host-client.js';
import { HostSelector } from './host-selector.js';
import { HostDirectory } from './host-directory.js';
import { HostLease } from './host-lease.js';
import { RetryingDispatch, type AttemptHandler, type Place } from './retrying-dispatch.js';
import { Placements } from './placements.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.current': { from: string; ref: ProgramRef };
    'hosting.forgotten': { from: string; ownerId: string };
    'hosting.renewed': { from: string; ownerId: string };
  }
}

/** How long requests to programs with state may go on when this process stops; their callers wait for the next host. */
const DRAIN_MS = 5_000;

/**
 * Hosting for the whole service: each program runs where {@link HostSelector} says, in this process or in another one that is
 * asked over internal HTTP. A request goes over at most one such hop: a host that is asked runs the program itself or says
 * that it does not.
 *
 * Messages about versions and owners go over the relay. One that is lost does no harm: the next call names its version,
 * programs nobody calls are stopped (`RUNTIME_IDLE_MS`), programs with state whose row is gone end with the next renewal of
 * the lease, and values that changed are found when they are compared, every four leases (60 s by default).
 */
@Injectable()
export class HostingRouter extends Hosting implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('hosting');
  private readonly processId = randomUUID();
  private local: LocalHosting | null;
  private isStopping = false;

  constructor(
    private readonly choice: HostSelector,
    private readonly directory: HostDirectory,
    private readonly placements: Placements,
    private readonly lease: HostLease,
    private readonly hosts: HostClient,
    private readonly pubSub: PubSub,
    @Optional() @Inject(LocalHosting) local?: LocalHosting,
  ) {
    super();
    this.local = local ?? null;
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.current', ({ from, ref }) => {
      if (from !== this.processId) void this.local?.current(ref);
    });
    await this.pubSub.subscribe('hosting.forgotten', ({ from, ownerId }) => {
      if (from !== this.processId) void this.forgetHere(ownerId);
    });
    await this.pubSub.subscribe('hosting.renewed', ({ from, ownerId }) => {
      if (from !== this.processId) void this.local?.renew(ownerId);
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.local) return;
    await this.lease.join({
      engines: () => this.engines(),
      joined: () => {
        this.directory.changed();
        void this.sweepState();
      },
      renewed: () => this.endTakenAway(),
      lost: async () => {
        this.placements.releasedAll();
        await this.local?.endStateful(0);
      },
    });
  }

  /** Runs programs with `local` from now on, in a process that is a host already. */
  async runWith(local: LocalHosting): Promise<void> {
    this.local = local;
    await this.lease.renewNow();
    this.directory.changed();
  }

  /** Programs with state end first: until then no other host may start them. The others go on while requests drain. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    if (!this.local) return;
    await this.local.endStateful(DRAIN_MS);
    await this.lease.leave();
    this.directory.changed();
  }

  dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void {
    new RetryingDispatch((passedOver) => this.choose(ref, passedOver), request, handler, this.onThrown).start();
  }

  /**
   * Runs here what another process sent to this one.
   *
   * @param hostId the host it meant; another id than this one's now is refused, so that nothing is said to the wrong one
   */
  receive(hostId: string, ref: ProgramRef, request: HostedRequest, handler: AttemptHandler): void {
    if (hostId !== this.lease.id) handler.fail(notHere());
    else this.runLocally(ref, request, handler);
  }

  async whyNot(engine: EngineName): Promise<string | null> {
    const here = this.local ? await this.local.whyNot(engine) : undefined;
    if (here === null) return null;
    const anywhere = await this.choice.whyNot(engine);
    return anywhere === null ? null : (here ?? anywhere);
  }

  async current(ref: ProgramRef): Promise<void> {
    this.pubSub.publish('hosting.current', { from: this.processId, ref });
    await this.local?.current(ref);
  }

  async renew(ownerId: string): Promise<void> {
    this.pubSub.publish('hosting.renewed', { from: this.processId, ownerId });
    await this.local?.renew(ownerId);
  }

  async forget(ownerId: string): Promise<void> {
    await this.placements.remove(ownerId).catch((error: unknown) => {
      this.logger.warn({ msg: 'the place of a program that is gone was not given back', err: error });
    });
    this.pubSub.publish('hosting.forgotten', { from: this.processId, ownerId });
    await this.local?.forget(ownerId);
  }

  private async engines(): Promise<Record<EngineName, string | null>> {
    const whyNot = async (engine: EngineName) => (await this.local?.whyNot(engine)) ?? null;
    return { worker: await whyNot('worker'), bundle: await whyNot('bundle') };
  }

  private async choose(ref: ProgramRef, passedOver: ReadonlySet<string>): Promise<Place> {
    // What was known when another place did not take the request is old.
    if (passedOver.size > 0) {
      this.directory.forget();
      this.placements.forgetCached(ref.ownerId);
    }
    const mayRunHere = this.local !== null && !this.isStopping;
    const host = await this.choice.choose(ref, { passedOver, mayRunHere });
    if (host) {
      return {
        id: host.id,
        send: (request, handler) => this.hosts.send(host, ref, request, handler),
        suspect: () => this.directory.suspect(host.id),
      };
    }
    return {
      id: this.lease.id,
      send: (request, handler) => this.runLocally(ref, request, handler),
      suspect: () => undefined,
    };
  }

  private runLocally(ref: ProgramRef, request: HostedRequest, handler: AttemptHandler): void {
    const { local } = this;
    if (!local) return handler.fail(notHere());
    if (!ref.isStateful) return local.dispatch(ref, request, handler);
    if (this.isStopping) return handler.fail(notHere());
    if (this.placements.isMine(ref.ownerId)) return local.dispatch(ref, request, handler);
    this.placements
      .claim(ref.ownerId, () => local.forget(ref.ownerId))
      .then(
        (isMine) => {
          if (isMine) local.dispatch(ref, request, handler);
          else handler.fail(notHere());
        },
        (error: unknown) => handler.fail(new HostingUnavailableError(unplaced, error)),
      )
      .catch(this.onThrown);
  }

  private readonly onThrown = (error: unknown): void => {
    this.logger.error({ msg: 'who asked a program could not take its answer', err: error });
  };

  private async forgetHere(ownerId: string): Promise<void> {
    this.placements.released(ownerId);
    await this.local?.forget(ownerId);
  }

  private async endTakenAway(): Promise<void> {
    for (const ownerId of await this.placements.takenAway()) await this.forgetHere(ownerId);
  }

  /** Removes the state of owners that are gone, or that ran with another data folder since. */
  private async sweepState(): Promise<void> {
    try {
      const kept = (await this.local?.ownersWithState()) ?? [];
      for (const ownerId of await this.placements.abandoned(kept)) await this.local?.forget(ownerId);
    } catch (error) {
      this.logger.warn({ msg: 'the state of programs that are gone was not removed', err: error });
    }
  }
}

const unplaced = 'Where this program runs cannot be told right now: try again in a moment.';

function notHere(): HostAwayError {
  return new HostAwayError('Another process runs this program now: try again.', 1);
}
