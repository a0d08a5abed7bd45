import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { McpCall, McpReply } from '../../../mcp/protocol/channel.js';
import { slice } from '../../../mcp/protocol/json-text.js';
import { resultOf } from '../../../mcp/protocol/messages.js';
import { DEPTH_MAX, toStorableText } from '../../../platform/database/storable.js';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { isWithinDepth } from '../../../platform/text/json.js';
import { isObject } from '../../../platform/text/json.js';
import { Vault } from '../../../platform/vault/vault.js';

/** What is recorded of one connection. */
const RECORDED_CALLS_MAX = 1_000;
const RECORDED_BYTES_MAX = 16 * 1024 * 1024;

/** A longer call is not recorded. */
const CALL_BYTES_MAX = 1024 * 1024;

/** What may wait in this process for the database; beyond it calls are not recorded. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;

interface Heard {
  connectionId: string;
  tool: string;
  /** A {@link RecordedCall} as JSON text. */
  text: string;
  bytes: number;
}

/** Hears the calls of one connection. */
export type CallTap = (call: McpCall, reply: McpReply) => void;

/** Writes down the calls of connections that are being recorded, behind the calls. */
@Injectable()
export class CallRecorder implements OnApplicationShutdown {
  private readonly logger = new Logger('recordings');
  private readonly waiting = new WriteBehind<number, Heard>('recorded calls', (batch) => this.write(batch), {
    of: ({ bytes }) => bytes,
    max: WAITING_BYTES_MAX,
  });
  private heard = 0;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly vault: Vault,
  ) {}

  /** Records until then; null when nothing is to be recorded. Never throws: a call that cannot be recorded is left out. */
  tap({ id, recordingUntil }: { id: string; recordingUntil: Date | null }): CallTap | null {
    const until = recordingUntil?.getTime() ?? 0;
    if (until <= Date.now()) return null;
    return (call, reply) => {
      if (Date.now() >= until) return;
      try {
        this.hear(id, call, reply);
      } catch (error) {
        // Arguments that are nested too deep cannot be written as JSON, although they could be read.
        this.logger.warn({ msg: 'a call could not be recorded', connectionId: id, err: error });
      }
    };
  }

  /** Writes what waits in this process. */
  async settle(): Promise<void> {
    await this.waiting.flush();
  }

  onApplicationShutdown(): Promise<void> {
    return this.waiting.onApplicationShutdown();
  }

  private hear(connectionId: string, { method, params = '{}' }: McpCall, reply: McpReply): void {
    if (method !== 'tools/call' || !reply.result) return;
    if (params.length + reply.text.length > CALL_BYTES_MAX) return;
    const { name, arguments: given = {} } = JSON.parse(params) as { name?: unknown; arguments?: unknown };
    // Written anew here, which is recursive; nobody needs such a call to be played again.
    if (!isWithinDepth(given, DEPTH_MAX)) return;
    const result = resultOf(reply);
    // A result that asks for input is no answer yet.
    const isAnswer = isObject(result) && (result.resultType === undefined || result.resultType === 'complete');
    if (typeof name !== 'string' || !isAnswer) return;
    const text = JSON.stringify({ tool: name, arguments: given, result: slice(reply.text, reply.result) });
    const bytes = Buffer.byteLength(text);
    this.waiting.set((this.heard += 1), { connectionId, tool: toStorableText(name), text, bytes });
  }

  private async write(batch: Map<number, Heard>): Promise<void> {
    const byConnection = new Map<string, Heard[]>();
    for (const heard of batch.values()) {
      const known = byConnection.get(heard.connectionId);
      if (known) known.push(heard);
      else byConnection.set(heard.connectionId, [heard]);
    }
    await this.database.transaction(async (tx) => {
      // In one order everywhere, so that two processes never wait for each other.
      for (const id of [...byConnection.keys()].sort()) await this.writeOf(id, byConnection.get(id) ?? [], tx);
    });
  }

  /** As many as there is room for, while the connection is there and is being recorded. */
  private async writeOf(id: string, heard: Heard[], tx: EntityManager): Promise<void> {
    const [recording] = await tx.query<unknown[]>(
      'SELECT 1 FROM connections WHERE id = $1 AND recording_until > now() FOR NO KEY UPDATE',
      [id],
    );
    if (!recording) return;
    const [used] = await tx.query<{ calls: number; bytes: number }[]>(
      'SELECT count(*)::int AS calls, coalesce(sum(bytes), 0)::int AS bytes FROM recorded_calls WHERE connection_id = $1',
      [id],
    );
    let { calls, bytes } = used ?? { calls: 0, bytes: 0 };
    for (const one of heard) {
      if (calls >= RECORDED_CALLS_MAX || bytes + one.bytes > RECORDED_BYTES_MAX) return;
      calls += 1;
      bytes += one.bytes;
      await tx.query('INSERT INTO recorded_calls (connection_id, tool, sealed, bytes) VALUES ($1, $2, $3, $4)', [
        id,
        one.tool,
        this.vault.seal(one.text, id),
        one.bytes,
      ]);
    }
  }
}
