import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { connected, type ConnectionStatus } from './connection-status.js';
import { StatusesRepository, type Observation } from './status.repository.js';

/** Minimum interval of written successes; a change of state is always written. */
const OK_EVERY_MS = 10_000;

/** Writes the outcomes of calls to the status without delaying them. */
@Injectable()
export class StatusRecorder implements OnApplicationShutdown {
  private readonly observed = new WriteBehind<string, Observation>('connection status', async (batch) => {
    await this.statusesRepository.write([...batch.values()], 'call');
  });

  constructor(private readonly statusesRepository: StatusesRepository) {}

  observer({ id, revision }: { id: string; revision: number }): StatusObserver {
    return new StatusObserver({ id, revision }, this.observed);
  }

  /** Returns true while an observation of this connection waits or is being written. */
  isPending(id: string): boolean {
    return this.observed.has(id);
  }

  /** Writes pending observations, so that a read after this returns them. */
  async settle(): Promise<void> {
    await this.observed.flush();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.observed.onApplicationShutdown();
  }
}

/** Observes one channel, and records only outcomes that differ from its last one. */
export class StatusObserver {
  private last: ConnectionStatus | null = null;
  private okAt = 0;

  constructor(
    private readonly connection: { id: string; revision: number },
    private readonly observed: WriteBehind<string, Observation>,
  ) {}

  succeeded(): void {
    const now = Date.now();
    if (this.last === connected && now - this.okAt < OK_EVERY_MS) return;
    this.okAt = now;
    this.record(connected);
  }

  /** Records a failure. `auth_required` is written immediately: a user might be waiting for the setup link. */
  failed(status: ConnectionStatus): void {
    const isNews = this.last?.state !== status.state;
    this.record(status);
    if (isNews && status.state === 'auth_required') void this.observed.flush();
  }

  private record(status: ConnectionStatus): void {
    this.last = status;
    const okAt = this.okAt === 0 ? null : new Date(this.okAt);
    this.observed.set(this.connection.id, { ...this.connection, status, at: new Date(), okAt, serverInfo: null });
  }
}
