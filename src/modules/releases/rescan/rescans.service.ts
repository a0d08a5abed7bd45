import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { RescansRepository } from './rescan.repository.js';

/** Interval that is stored even while periodic scans are off. */
const HOURS_WHEN_OFF = 24;

/** Intervals vary by a tenth, so that servers published together are not always scanned together. */
const JITTER = 0.1;

/** Pause after a failed scan; doubled with each consecutive failure, up to seven periods. */
const FIRST_PAUSE_SECONDS = 3_600;
const PERIODS_MAX = 7;

@Injectable()
export class RescansService {
  constructor(
    private readonly rescansRepository: RescansRepository,
    private readonly pubSub: PubSub,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  /**
   * Plans a scan. Called in the transaction in which the release becomes current, after the server's row was locked. Scans of the
   * previous release no longer have an effect.
   *
   * @param isChecked true if the release was scanned just now. Otherwise a failed security check of the previous
   * release remains until this one is scanned, which is due immediately
   */
  async watch(serverId: string, snapshot: ServerSnapshot, isChecked: boolean, tx: EntityManager): Promise<void> {
    const { type, upstreamUrl, hadCredentials = false } = snapshot;
    await this.rescansRepository.plan(
      {
        serverId,
        // Hosted code changes only with releases; without the removed credentials a scan might list less.
        upstreamUrl: type === 'external_shttp' && !hadCredentials ? upstreamUrl : null,
        pauseSeconds: this.pauseSeconds(0),
        isChecked,
        isScannable: (type !== 'stdio' || this.env.runtimeBundles !== 'off') && !hadCredentials,
      },
      tx,
    );
  }

  /**
   * Requests a scan. A running scan is followed by another one, because it might have started before the change that prompted the
   * request.
   *
   * @param credentials for this scan only
   * @returns false if the release is not current
   */
  async request(serverId: string, releaseId: string, credentials?: Record<string, string>): Promise<boolean> {
    const sealed = credentials === undefined ? null : this.vault.seal(JSON.stringify(credentials), releaseId);
    if (!(await this.rescansRepository.request(serverId, releaseId, sealed))) return false;
    this.pubSub.publish('releases.rescan', {});
    return true;
  }

  /** @param failures consecutive failed scans */
  pauseSeconds(failures: number): number {
    const period = (this.env.releaseRescanHours || HOURS_WHEN_OFF) * 3_600;
    const pause = failures === 0 ? period : FIRST_PAUSE_SECONDS * 2 ** Math.min(failures - 1, 16);
    return Math.min(pause, PERIODS_MAX * period) * (1 - JITTER + 2 * JITTER * Math.random());
  }
}
