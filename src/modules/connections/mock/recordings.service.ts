import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { CallRecorder } from './call-recorder.js';
import { RecordedCallRow } from './recorded-call.entity.js';
import type { RecordedToolDto, RecordingDto } from './recording.dto.js';

/** How long recording goes on by itself, and how long a recorded call is kept. */
const KEPT = `interval '7 days'`;

/** How often calls beyond that are looked for. */
const SWEEP_MS = 60 * 60_000;

type Recorded = Pick<Connection, 'id' | 'namespaceId' | 'connectionId' | 'revision' | 'recordingUntil'>;

/** Recordings of real calls: started, shown and deleted. */
@Injectable()
export class RecordingsService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('recordings');
  private timer: NodeJS.Timeout | null = null;
  private sweeping: Promise<void> = Promise.resolve();

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    @InjectRepository(RecordedCallRow) private readonly calls: Repository<RecordedCallRow>,
    private readonly recorder: CallRecorder,
    private readonly links: ConnectionHandles,
  ) {}

  onApplicationBootstrap(): void {
    const sweep = () => (this.sweeping = this.sweeping.then(() => this.sweep()));
    void sweep();
    this.timer = setInterval(() => void sweep(), SWEEP_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    await this.sweeping;
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async set(namespace: OwnedNamespace, connectionId: string, enabled: boolean): Promise<RecordingDto> {
    await this.recorder.settle();
    const rows = await this.connections.query<[Recorded[], number]>(
      `UPDATE connections SET recording_until = ${enabled ? `now() + ${KEPT}` : 'NULL'}, revision = revision + 1
        WHERE namespace_id = $1 AND connection_id = $2 AND mock IS NULL
        RETURNING id, namespace_id AS "namespaceId", connection_id AS "connectionId", revision`,
      [namespace.id, connectionId],
    );
    const [changed] = rows[0];
    if (!changed) {
      await this.find(namespace, connectionId);
      throw new InvalidInputError('A simulated connection cannot be recorded: it makes no real calls.');
    }
    this.links.announce(changed, changed.revision);
    return this.get(namespace, connectionId);
  }

  /** @throws ResourceNotFoundError */
  async get(namespace: OwnedNamespace, connectionId: string): Promise<RecordingDto> {
    await this.recorder.settle();
    const { id, recordingUntil } = await this.find(namespace, connectionId);
    const tools = await this.calls.query<(RecordedToolDto & { bytes: number })[]>(
      `SELECT tool AS name, count(*)::int AS calls, sum(bytes)::int AS bytes FROM recorded_calls
        WHERE connection_id = $1 AND recorded_at > now() - ${KEPT} GROUP BY tool ORDER BY tool`,
      [id],
    );
    const isOn = recordingUntil !== null && recordingUntil.getTime() > Date.now();
    return {
      enabled: isOn,
      ...(isOn ? { until: recordingUntil.toISOString() } : {}),
      calls: tools.reduce((sum, { calls }) => sum + calls, 0),
      bytes: tools.reduce((sum, { bytes }) => sum + bytes, 0),
      tools: tools.map(({ name, calls }) => ({ name, calls })),
    };
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async remove(namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    await this.set(namespace, connectionId, false);
    const { id } = await this.find(namespace, connectionId);
    await this.calls.delete({ connectionId: id });
    return { success: true };
  }

  private async find(namespace: OwnedNamespace, connectionId: string): Promise<Recorded> {
    const row = await this.connections.findOne({
      where: { namespaceId: namespace.id, connectionId },
      select: { id: true, namespaceId: true, connectionId: true, revision: true, recordingUntil: true },
    });
    if (!row) throw new ResourceNotFoundError();
    return row;
  }

  private async sweep(): Promise<void> {
    try {
      await this.calls.query(`DELETE FROM recorded_calls WHERE recorded_at < now() - ${KEPT}`);
    } catch (error) {
      this.logger.warn({ msg: 'recorded calls could not be swept, trying again in an hour', err: error as Error });
    }
  }
}
