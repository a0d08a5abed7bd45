import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { RescansRepository } from './rescan.repository.js';

/** Period while periodic scans are off: times are stored all the same. */
const HOURS_WHEN_OFF = 24;

/** Pauses vary by a tenth, so that servers published together are not scanned together each time. */
const JITTER = 0.1;

/** Pause after a failed scan; doubled with each failure in a row, up to seven periods. */
const FIRST_PAUSE_SECONDS = 3_600;
const PERIODS_MAX = 7;

/** Schedules scans of current releases. */
@Injectable()
export class RescansService {
  constructor(
    private readonly rescansRepository: RescansRepository,
    private readonly pubSub: PubSub,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  /**
   * Schedules the scans of a release that becomes current, within the transaction that makes it current and after the
   * server's row was locked. A scan of the release before it has no effect any more.
   *
   * @param isChecked true if it was scanned just now. Otherwise a failed security check of the release before it stands
   * until a scan of this one, which is due at once
   */
  async watch(serverId: string, snapshot: ServerSnapshot, isChecked: boolean, tx: EntityManager): Promise<void> {
    const { type, upstreamUrl, hadCredentials = false } = snapshot;
    await this.rescansRepository.plan(
      {
        serverId,
        // Code that runs here changes with releases only; without the removed credentials a scan may show less.
        upstreamUrl: type === 'external_shttp' && !hadCredentials ? upstreamUrl : null,
        pauseSeconds: this.pauseSeconds(0),
        isChecked,
        isScannable: (type !== 'stdio' || this.env.runtimeBundles !== 'off') && !hadCredentials,
      },
      tx,
    );
  }

  /**
   * Requests a scan of a server's current release, as soon as a worker is free. A scan under way is followed by another
   * one, since it may have begun before the change that the request is about.
   *
   * @param credentials for this scan only
   * @returns false when the release is not the current one
   */
  async request(serverId: string, releaseId: string, credentials?: Record<string, string>): Promise<boolean> {
    const sealed = credentials === undefined ? null : this.vault.seal(JSON.stringify(credentials), releaseId);
    if (!(await this.rescansRepository.request(serverId, releaseId, sealed))) return false;
    this.pubSub.publish('releases.rescan', {});
    return true;
  }

  /** Seconds until the next scan. @param failures failed scans in a row */
  pauseSeconds(failures: number): number {
    const period = (this.env.releaseRescanHours || HOURS_WHEN_OFF) * 3_600;
    const pause = failures === 0 ? period : FIRST_PAUSE_SECONDS * 2 ** Math.min(failures - 1, 16);
    return Math.min(pause, PERIODS_MAX * period) * (1 - JITTER + 2 * JITTER * Math.random());
  }
}
