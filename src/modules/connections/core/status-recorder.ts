import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { connected, type ConnectionStatus } from './connection-status.js';
import { StatusWriter, type Seen } from './status-writer.js';

/** A call's good outcome is worth a write this often; a change of state always is. */
const OK_EVERY_MS = 10_000;

/** What calls observed of their connections, on its way into the rows; never on the way of a call. */
@Injectable()
export class StatusRecorder implements OnApplicationShutdown {
  private readonly observed = new WriteBehind<string, Seen>('connection status', async (batch) => {
    await this.writer.write([...batch.values()], 'call');
  });

  constructor(private readonly writer: StatusWriter) {}

  /** What one channel of a connection observes from now on. */
  observer({ id, revision }: { id: string; revision: number }): StatusObserver {
    return new StatusObserver({ id, revision }, this.observed);
  }

  /** Writes what waits, so that a read after this tells the latest. */
  async settle(): Promise<void> {
    await this.observed.flush();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.observed.onApplicationShutdown();
  }
}

/** Remembers the last outcome of one channel, and passes on what is new about it. */
export class StatusObserver {
  private last: ConnectionStatus | null = null;
  private okAt = 0;

  constructor(
    private readonly connection: { id: string; revision: number },
    private readonly observed: WriteBehind<string, Seen>,
  ) {}

  succeeded(): void {
    const now = Date.now();
    if (this.last === connected && now - this.okAt < OK_EVERY_MS) return;
    this.okAt = now;
    this.record(connected);
  }

  /** What only a person can change is written at once: they may be looking already. */
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
