import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { Connection } from './connection.entity.js';
import { connected, type ConnectionStatus } from './connection-status.js';

/** A call's good outcome is worth a write this often; a change of state always is. */
const OK_EVERY_MS = 10_000;

interface Observation extends ConnectionStatus {
  revision: number;
  at: Date;
  okAt: Date | null;
}

/** What calls observed of their connections, on its way into the rows; never on the way of a call. */
@Injectable()
export class StatusRecorder implements OnApplicationShutdown {
  private readonly observed = new WriteBehind<string, Observation>('connection status', (batch) => this.write(batch));

  constructor(@InjectRepository(Connection) private readonly connections: Repository<Connection>) {}

  /** What one channel of a connection observes from now on. */
  observer(connection: { id: string; revision: number }): StatusObserver {
    return new StatusObserver(connection, this.observed);
  }

  /** Writes what waits, so that a read after this tells the latest. */
  async settle(): Promise<void> {
    await this.observed.flush();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.observed.onApplicationShutdown();
  }

  /** An observation of an earlier revision says nothing about the connection any more. */
  private async write(batch: Map<string, Observation>): Promise<void> {
    const rows = [...batch];
    await this.connections.query(
      `UPDATE connections c
          SET status_state = o.state, status_reason = o.reason, status_message = o.message, status_inputs = o.inputs,
              status_since = CASE WHEN c.status_state = o.state THEN c.status_since ELSE o.at END,
              last_ok_at = GREATEST(c.last_ok_at, o.ok_at)
         FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                     $8::jsonb[])
              AS o(id, revision, state, message, at, ok_at, reason, inputs)
        WHERE c.id = o.id AND c.revision = o.revision`,
      [
        rows.map(([id]) => id),
        rows.map(([, { revision }]) => revision),
        rows.map(([, { state }]) => state),
        rows.map(([, { message }]) => message),
        rows.map(([, { at }]) => at),
        rows.map(([, { okAt }]) => okAt),
        rows.map(([, { reason }]) => reason),
        rows.map(([, { inputs }]) => inputs && JSON.stringify(inputs)),
      ],
    );
  }
}

/** Remembers the last outcome of one channel, and passes on what is new about it. */
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

  failed(status: ConnectionStatus): void {
    this.record(status);
  }

  private record(status: ConnectionStatus): void {
    this.last = status;
    this.observed.set(this.connection.id, {
      ...status,
      revision: this.connection.revision,
      at: new Date(),
      okAt: this.okAt === 0 ? null : new Date(this.okAt),
    });
  }
}
