import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { ConnectionEvents, DEPTH_MAX, groupBy, isObject, isWithinDepth, resultOf, slice } from '../../extension.js';
import { toStorableText, Vault, WriteBehind, type McpCall, type McpReply } from '../../extension.js';
import { RecordingsRepository } from './recordings.repository.js';

const RECORDED_CALLS_MAX = 1_000;
const RECORDED_BYTES_MAX = 16 * 1024 * 1024;

/** Maximum size of a recorded call; larger calls are not recorded. */
const CALL_BYTES_MAX = 1024 * 1024;

/** Limit of buffered calls in this process while the database is unavailable; further calls are not recorded. */
const BUFFER_BYTES_MAX = 32 * 1024 * 1024;

interface BufferedCall {
  connectionId: string;
  tool: string;
  text: string;
  bytes: number;
}

@Injectable()
export class CallRecorder implements OnApplicationShutdown {
  private readonly buffer = new WriteBehind<number, BufferedCall>('recorded calls', (batch) => this.write(batch), {
    of: ({ bytes }) => bytes,
    max: BUFFER_BYTES_MAX,
  });
  private sequence = 0;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly recordingsRepository: RecordingsRepository,
    private readonly vault: Vault,
    connectionEvents: ConnectionEvents,
  ) {
    connectionEvents.on('answered', ({ id, recordingUntil }, call, reply) => {
      if (Date.now() < (recordingUntil?.getTime() ?? 0)) this.record(id, call, reply);
    });
  }

  async settle(): Promise<void> {
    await this.buffer.flush();
  }

  onApplicationShutdown(): Promise<void> {
    return this.buffer.onApplicationShutdown();
  }

  private record(connectionId: string, { method, params = '{}' }: McpCall, reply: McpReply): void {
    if (method !== 'tools/call' || !reply.result) return;
    if (params.length + reply.text.length > CALL_BYTES_MAX) return;
    const { name, arguments: args = {} } = JSON.parse(params) as { name?: unknown; arguments?: unknown };
    // JSON.stringify is recursive.
    if (!isWithinDepth(args, DEPTH_MAX)) return;
    const result = resultOf(reply);
    // A result with another type, such as `input_required`, is not final.
    const isAnswer = isObject(result) && (result.resultType === undefined || result.resultType === 'complete');
    if (typeof name !== 'string' || !isAnswer) return;
    const text = JSON.stringify({ tool: name, arguments: args, result: slice(reply.text, reply.result) });
    const bytes = Buffer.byteLength(text);
    this.buffer.set((this.sequence += 1), { connectionId, tool: toStorableText(name), text, bytes });
  }

  private async write(batch: Map<number, BufferedCall>): Promise<void> {
    const calls = groupBy(batch.values(), ({ connectionId }) => connectionId);
    await this.database.transaction(async (tx) => {
      // Takes locks in the same order in all processes, to avoid deadlocks.
      for (const id of [...calls.keys()].sort()) {
        // The size is null if the connection was deleted or is no longer recorded.
        const size = await this.recordingsRepository.lockActive(id, tx);
        if (!size) continue;
        for (const call of calls.get(id) ?? []) {
          if (size.calls >= RECORDED_CALLS_MAX || size.bytes + call.bytes > RECORDED_BYTES_MAX) break;
          size.calls += 1;
          size.bytes += call.bytes;
          const sealed = this.vault.seal(call.text, id);
          await this.recordingsRepository.insert(id, { tool: call.tool, sealed, bytes: call.bytes }, tx);
        }
      }
    });
  }
}
