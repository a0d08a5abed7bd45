import { Injectable } from '@nestjs/common';
import {
  canonicalJson,
  ConnectionHandles,
  Connections,
  decodeCursor,
  encodeCursor,
  groupBy,
  InvalidInputError,
  isObject,
  MockRecordings,
  ResourceNotFoundError,
  Vault,
  type Caller,
  type JsonObject,
  type OwnedNamespace,
  type RecordedCall,
  type SuccessDto,
} from '../../extension.js';
import { CallRecorder } from './call-recorder.js';
import type {
  RecordedCallDto,
  RecordedCallsDto,
  RecordedCallsQueryDto,
  RecordedFixtureDto,
  RecordedRuleDto,
  RecordingDto,
} from './recording.dto.js';
import { RecordingsRepository, type RecordableConnection } from './recordings.repository.js';

interface ConnectionRef {
  namespace: OwnedNamespace;
  id: string;
}

@Injectable()
export class RecordingsService {
  constructor(
    private readonly recordingsRepository: RecordingsRepository,
    private readonly callRecorder: CallRecorder,
    private readonly connections: Connections,
    private readonly connectionHandles: ConnectionHandles,
    private readonly vault: Vault,
    mockRecordings: MockRecordings,
  ) {
    mockRecordings.read = (namespaceId, connectionId) => this.read(namespaceId, connectionId);
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async set(caller: Caller, connection: ConnectionRef, enabled: boolean): Promise<RecordingDto> {
    await this.find(caller, connection);
    const { namespace, id } = connection;
    const changed = await this.recordingsRepository.setEnabled(caller, namespace.id, id, enabled);
    if (!changed) {
      throw new InvalidInputError('A simulated connection cannot be recorded: it makes no real calls.');
    }
    this.connectionHandles.announce(changed);
    return this.get(caller, connection);
  }

  /** @throws ResourceNotFoundError */
  async get(caller: Caller, connection: ConnectionRef): Promise<RecordingDto> {
    return this.describe(await this.find(caller, connection));
  }

  async findById(id: string): Promise<RecordableConnection | null> {
    await this.callRecorder.settle();
    return this.recordingsRepository.find({ id });
  }

  async describe({ id, recordingUntil }: RecordableConnection): Promise<RecordingDto> {
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

  /** Lists the calls in their order. @throws ResourceNotFoundError, InvalidInputError for an invalid cursor */
  async listCalls(
    caller: Caller,
    connection: ConnectionRef,
    { limit = 20, cursor }: RecordedCallsQueryDto,
  ): Promise<RecordedCallsDto> {
    const { id } = await this.find(caller, connection);
    const rows = await this.callsAfter(id, cursor === undefined ? '0' : decodeCursor(cursor, id), limit + 1);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      calls: page.map(({ call }) => call),
      nextCursor: rows.length > limit && last ? encodeCursor(last.seq, id) : null,
    };
  }

  /** Lists the calls in their order. @param id of the connection's row */
  async callsAfter(id: string, seq: string, limit: number): Promise<{ seq: string; call: RecordedCallDto }[]> {
    const rows = await this.recordingsRepository.recordedAfter(id, seq, limit);
    return rows.map(({ seq, at, sealed }) => {
      const { tool, arguments: args, result } = JSON.parse(this.vault.open(sealed, id)) as RecordedCall;
      return { seq, call: { at: at.toISOString(), tool, arguments: args, result: JSON.parse(result) as JsonObject } };
    });
  }

  /**
   * Returns the recording as a fixture that behaves like a replay: equal arguments return the recorded results in their
   * order, and the last one repeats.
   *
   * @throws ResourceNotFoundError
   */
  async fixture(caller: Caller, connection: ConnectionRef): Promise<RecordedFixtureDto> {
    await this.find(caller, connection);
    const recorded = await this.read(connection.namespace.id, connection.id);
    const calls = recorded.map((text) => JSON.parse(text) as RecordedCall);
    const tools = [...groupBy(calls, ({ tool }) => tool)].map(([tool, ofTool]): [string, RecordedRuleDto[]] => {
      // Arguments that match others are a part of them, so their JSON is shorter.
      const groups = [...groupBy(ofTool, (call) => canonicalJson(call.arguments))].toSorted(
        ([a], [b]) => b.length - a.length,
      );
      return [tool, groups.flatMap(([, equal]) => rulesOf(equal))];
    });
    return { tools: Object.fromEntries(tools) };
  }

  /** @throws ResourceNotFoundError, InvalidInputError for a simulated connection */
  async remove(caller: Caller, connection: ConnectionRef): Promise<SuccessDto> {
    await this.set(caller, connection, false);
    const { id } = await this.find(caller, connection);
    await this.recordingsRepository.delete(id);
    return { success: true };
  }

  private async read(namespaceId: string, connectionId: string): Promise<string[]> {
    await this.callRecorder.settle();
    const rows = await this.recordingsRepository.listCalls(namespaceId, connectionId);
    return rows.map(({ id, sealed }) => this.vault.open(sealed, id));
  }

  /** Finds the row after the calls of this process were written. @throws ResourceNotFoundError */
  private async find(caller: Caller, { namespace, id }: ConnectionRef): Promise<RecordableConnection> {
    await this.callRecorder.settle();
    await this.connections.find(caller, `${namespace.name}/${id}`);
    const row = await this.recordingsRepository.find({ id, namespaceId: namespace.id });
    if (!row) throw new ResourceNotFoundError();
    return row;
  }
}

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

function fixtureResult({ content, structuredContent, isError, _meta }: JsonObject): JsonObject {
  const blocks = Array.isArray(content) ? content : [];
  return {
    content: blocks.filter((block) => isObject(block) && typeof block.type === 'string'),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(typeof isError === 'boolean' && { isError }),
    ...(isObject(_meta) && { _meta }),
  };
}
