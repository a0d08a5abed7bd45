/**
 * Placements of stateful programs: which host runs a program, and in which data folder its state is. At most one host
 * has a program, however many claim it at the same time.
 *
 * A claim is one statement; a host that dies loses its programs when its lease expires, and `epoch` distinguishes one
 * lease of a process from the next. When a program ran with another folder before, the outdated state on this host is
 * removed first. Rows are cached for 5 s.
 *
 * Hosts share a folder if they read the same `hosting/folder-id` in it, whatever its path. An operator who copies a
 * folder for a second service removes that file from the copy.
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { RowCache } from '../../platform/database/row-cache.js';
import { ProcessRegistry } from '../../platform/processes/process-registry.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { PlacementsRepository, type Placement } from './placements.repository.js';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { isUUID } from 'class-validator';
import { Env } from '../../config/env.js';
import { makeFolder, createOnce, readIfThere } from '../../platform/files/files.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.placed': { ownerId: string };
  }
}

@Injectable()
export class DataFolder {
  private cachedId: string | null = null;

  constructor(private readonly env: Env) {}

  /** Returns the id, which is created on first use. @throws the file system's error, and Error when the file holds something else */
  async id(): Promise<string> {
    if (this.cachedId !== null) return this.cachedId;
    const folder = path.join(this.env.dataDir, 'hosting');
    const file = path.join(folder, 'folder-id');
    await makeFolder(folder);
    const id = ((await readIfThere(file)) ?? (await createOnce(file, `${randomUUID()}\n`))).trim();
    if (!isUUID(id)) throw new Error(`${file} does not hold an id: remove it`);
    this.cachedId = id;
    return id;
  }
}

@Injectable()
export class Placements implements OnModuleInit {
  /** Cached placements. A claim is also published, and a host that does not have the program reports it. */
  private readonly cache = new RowCache<Placement>((ownerId) => this.placementsRepository.find(ownerId));
  private readonly ownEpochs = new Map<string, string>();
  private readonly claiming = new Map<string, Promise<boolean>>();

  constructor(
    private readonly placementsRepository: PlacementsRepository,
    private readonly processRegistry: ProcessRegistry,
    readonly dataFolder: DataFolder,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.placed', ({ ownerId }) => this.forgetCached(ownerId));
  }

  /** Returns the placement; null when the program never ran. @throws the database's error */
  find(ownerId: string): Promise<Placement | null> {
    return this.cache.get(ownerId);
  }

  forgetCached(ownerId: string): void {
    this.cache.drop(ownerId);
  }

  /** Returns true while the program may run in this process. */
  isMine(ownerId: string): boolean {
    const { epoch } = this.processRegistry;
    return epoch !== null && this.ownEpochs.get(ownerId) === epoch;
  }

  /**
   * Claims a program for this host. Concurrent calls share one statement.
   *
   * @param clear removes state of the program from this host's data folder, when the program has since run with another
   * folder, or never ran
   * @returns false when another host has it, or the lease of this one is lost @throws the database's error
   */
  claim(ownerId: string, clear: () => Promise<void>): Promise<boolean> {
    const running = this.claiming.get(ownerId);
    if (running) return running;
    const started = this.claimNow(ownerId, clear).finally(() => this.claiming.delete(ownerId));
    this.claiming.set(ownerId, started);
    return started;
  }

  /** @throws the database's error */
  async remove(ownerId: string): Promise<void> {
    await this.placementsRepository.remove(ownerId);
    this.released(ownerId);
    this.pubSub.publish('hosting.placed', { ownerId });
  }

  released(ownerId: string): void {
    this.ownEpochs.delete(ownerId);
    this.forgetCached(ownerId);
  }

  releasedAll(): void {
    this.ownEpochs.clear();
  }

  /** Call it after the programs have exited. @throws the database's error */
  async releaseAll(): Promise<void> {
    this.releasedAll();
    await this.placementsRepository.releaseAll(this.processRegistry.id);
  }

  /** Returns programs of this host without a placement: their owner was deleted, and the message about the deletion was lost. */
  async takenAway(): Promise<string[]> {
    const { epoch } = this.processRegistry;
    const before = [...this.ownEpochs.keys()];
    if (before.length === 0 || epoch === null) return [];
    const placed = new Set(await this.placementsRepository.ownersAt(this.processRegistry.id, epoch));
    return before.filter((ownerId) => !placed.has(ownerId));
  }

  /** Returns those owners whose state in the data folder of this host is obsolete. @throws the database's error */
  async listObsolete(ownerIds: string[]): Promise<string[]> {
    if (this.processRegistry.epoch === null) return [];
    return this.placementsRepository.withoutStateIn(await this.dataFolder.id(), ownerIds);
  }

  private async claimNow(ownerId: string, clear: () => Promise<void>): Promise<boolean> {
    const { id: hostId, epoch } = this.processRegistry;
    if (epoch === null) return false;
    const dataId = await this.dataFolder.id();
    const dataBefore = await this.placementsRepository.claim(ownerId, { hostId, epoch, dataId });
    if (dataBefore !== undefined && dataBefore !== dataId) await clear();
    // A response that arrives after the fence is ignored.
    if (dataBefore === undefined || this.processRegistry.epoch !== epoch) return false;
    this.ownEpochs.set(ownerId, epoch);
    this.forgetCached(ownerId);
    this.pubSub.publish('hosting.placed', { ownerId });
    return true;
  }
}
