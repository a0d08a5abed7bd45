import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { hashSecret } from '../http/secrets.js';
import { MetricsOffError, MetricsTokenError } from './metrics.errors.js';
import { Metrics } from './metrics.js';

/** The metrics, for those who may read them. */
@Injectable()
export class MetricsPage {
  constructor(
    private readonly metrics: Metrics,
    private readonly env: Env,
  ) {}

  /** @param authorization the header of that name @throws MetricsOffError, MetricsTokenError */
  async read(authorization: string | undefined): Promise<string> {
    const { metricsToken } = this.env;
    if (metricsToken !== null && metricsToken !== 'open') requireToken(metricsToken, authorization);
    const text = await this.metrics.text();
    if (text === null) throw new MetricsOffError();
    return text;
  }
}

/** Compares hashes, which are of one length, so that the time it takes tells nothing. */
function requireToken(token: string, authorization = ''): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
  if (!timingSafeEqual(hashSecret(given), hashSecret(token))) throw new MetricsTokenError();
}
