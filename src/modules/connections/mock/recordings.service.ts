import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { Actor } from '../../../platform/database/actor.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { decodeCursor, encodeCursor } from '../../../platform/http/cursor.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { canonicalJson, isObject, type JsonObject } from '../../../platform/text/json.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { groupBy } from '../../../platform/group-by.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ConnectionReader } from '../core/connection-reader.js';
import { isConnectionId } from '../core/connection-target.js';
import { CallRecorder } from './call-recorder.js';
import { RecordedCallRow } from './mock.entity.js';
import type {
  RecordedCallsDto,
  RecordedCallsQueryDto,
  RecordedFixtureDto,
  RecordedRuleDto,
  RecordingDto,
} from './recording.dto.js';
import { RecordingsRepository } from './recordings.repository.js';
import type { RecordedCall } from './simulator/simulator.js';

/** Interval of the deletion of expired calls. */
const SWEEP_MS = 60 * 60_000;

/** Recordings of real calls: started, shown and deleted. */
@Injectable()
export class RecordingsService implements OnApplicationBootstrap {
  constructor(
    @InjectRepository(RecordedCallRow) private readonly recordedCallRowRepository: Repository<RecordedCallRow>,
    private readonly recordingsRepository: RecordingsRepository,
    private readonly callRecorder: CallRecorder,
    private readonly connectionReader: ConnectionReader,
    private readonly connectionHandles: ConnectionHandles,
    private readonly schedule: Schedule,
    private readonly vault: Vault,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('deletion of expired recordings', SWEEP_MS, () => this.recordingsRepository.deleteExpired(), {
      immediately: true,
    });
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async set(actor: Actor, namespace: OwnedNamespace, connectionId: string, enabled: boolean): Promise<RecordingDto> {
    await this.callRecorder.settle();
    const changed =
      isConnectionId(connectionId) &&
      (await this.recordingsRepository.setEnabled(actor, namespace.id, connectionId, enabled));
    if (!changed) {
      await this.connectionReader.find(namespace, connectionId);
      throw new InvalidInputError('A simulated connection cannot be recorded: it makes no real calls.');
    }
    this.connectionHandles.announce(changed);
    return this.get(namespace, connectionId);
  }

  /** @throws ResourceNotFoundError */
  async get(namespace: OwnedNamespace, connectionId: string): Promise<RecordingDto> {
    await this.callRecorder.settle();
    const { id, recordingUntil } = await this.connectionReader.find(namespace, connectionId);
    const tools = await this.recordingsRepository.tools(id);
    const isOn = recordingUntil !== null && recordingUntil.getTime() > Date.now();
    return {
      enabled: isOn,
      ...(isOn ? { until: recordingUntil.toISOString() } : {}),
      calls: tools.reduce((sum, { calls }) => sum + calls, 0),
      bytes: tools.reduce((sum, { bytes }) => sum + bytes, 0),
      tools: tools.map(({ name, calls }) => ({ name, calls })),
    };
  }

  /** A page of the recorded calls, in their order. @throws ResourceNotFoundError, InvalidInputError for a foreign cursor */
  async callsOf(
    namespace: OwnedNamespace,
    connectionId: string,
    { limit = 20, cursor }: RecordedCallsQueryDto,
  ): Promise<RecordedCallsDto> {
    await this.callRecorder.settle();
    const { id } = await this.connectionReader.find(namespace, connectionId);
    const after = cursor === undefined ? '0' : decodeCursor(cursor, id);
    const rows = await this.recordingsRepository.recordedAfter(id, after, limit + 1);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      calls: page.map(({ at, sealed }) => {
        const { tool, arguments: args, result } = JSON.parse(this.vault.open(sealed, id)) as RecordedCall;
        return { at: at.toISOString(), tool, arguments: args, result: JSON.parse(result) as JsonObject };
      }),
      nextCursor: rows.length > limit && last ? encodeCursor(last.seq, id) : null,
    };
  }

  /**
   * The recording as a fixture, which answers each recorded call as a replay does: with the results of equal arguments in their
   * order, of which the last one repeats. A rule also matches calls with more arguments, so those with more stand before.
   *
   * @throws ResourceNotFoundError
   */
  async fixture(namespace: OwnedNamespace, connectionId: string): Promise<RecordedFixtureDto> {
    await this.callRecorder.settle();
    await this.connectionReader.find(namespace, connectionId);
    const rows = await this.recordingsRepository.listCalls(namespace.id, connectionId);
    const calls = rows.map(({ id, sealed }) => JSON.parse(this.vault.open(sealed, id)) as RecordedCall);
    const tools = [...groupBy(calls, ({ tool }) => tool)].map(([tool, ofTool]): [string, RecordedRuleDto[]] => {
      // Arguments that match others are a part of them, and their text is shorter.
      const groups = [...groupBy(ofTool, (call) => canonicalJson(call.arguments))].toSorted(
        ([a], [b]) => b.length - a.length,
      );
      return [tool, groups.flatMap(([, equal]) => rulesOf(equal))];
    });
    return { tools: Object.fromEntries(tools) };
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async remove(actor: Actor, namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    await this.set(actor, namespace, connectionId, false);
    const { id } = await this.connectionReader.find(namespace, connectionId);
    await this.recordedCallRowRepository.delete({ connectionId: id });
    return { success: true };
  }
}

/** The rules of recorded calls with equal arguments, in their order. */
function rulesOf(calls: readonly RecordedCall[]): RecordedRuleDto[] {
  const runs: { call: RecordedCall; times: number }[] = [];
  for (const call of calls) {
    const last = runs.at(-1);
    if (last?.call.result === call.result) last.times += 1;
    else runs.push({ call, times: 1 });
  }
  return runs.map(({ call, times }, at) => ({
    arguments: call.arguments,
    result: fixtureResult(JSON.parse(call.result) as JsonObject),
    ...(at < runs.length - 1 && { times }),
  }));
}

/** A result with the members that fixtures have, in the form that they take. */
function fixtureResult({ content, structuredContent, isError, _meta }: JsonObject): JsonObject {
  const blocks = Array.isArray(content) ? content : [];
  return {
    content: blocks.filter((block) => isObject(block) && typeof block.type === 'string'),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(typeof isError === 'boolean' && { isError }),
    ...(isObject(_meta) && { _meta }),
  };
}
