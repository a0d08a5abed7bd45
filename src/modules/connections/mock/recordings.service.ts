import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ConnectionReader } from '../core/connection-reader.js';
import { CallRecorder } from './call-recorder.js';
import { RecordedCallRow } from './mock.entity.js';
import type { RecordingDto } from './recording.dto.js';
import { RecordingsRepository } from './recordings.repository.js';

/** Interval of the deletion of expired calls. */
const SWEEP_MS = 60 * 60_000;

/** Recordings of real calls: started, shown and deleted. */
@Injectable()
export class RecordingsService implements OnApplicationBootstrap {
  constructor(
    @InjectRepository(RecordedCallRow) private readonly calls: Repository<RecordedCallRow>,
    private readonly recordings: RecordingsRepository,
    private readonly recorder: CallRecorder,
    private readonly reader: ConnectionReader,
    private readonly handles: ConnectionHandles,
    private readonly schedule: Schedule,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('deletion of expired recordings', SWEEP_MS, () => this.recordings.deleteExpired(), {
      immediately: true,
    });
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async set(namespace: OwnedNamespace, connectionId: string, enabled: boolean): Promise<RecordingDto> {
    await this.recorder.settle();
    const changed = await this.recordings.setEnabled(namespace.id, connectionId, enabled);
    if (!changed) {
      await this.reader.find(namespace, connectionId);
      throw new InvalidInputError('A simulated connection cannot be recorded: it makes no real calls.');
    }
    this.handles.announce(changed);
    return this.get(namespace, connectionId);
  }

  /** @throws ResourceNotFoundError */
  async get(namespace: OwnedNamespace, connectionId: string): Promise<RecordingDto> {
    await this.recorder.settle();
    const { id, recordingUntil } = await this.reader.find(namespace, connectionId);
    const tools = await this.recordings.tools(id);
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
    const { id } = await this.reader.find(namespace, connectionId);
    await this.calls.delete({ connectionId: id });
    return { success: true };
  }
}
