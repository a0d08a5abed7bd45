import { describe, expect, jest } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { verifies } from '../../../test/support/verifies.js';
import { ConnectionEvents, Vault } from '../../extension.js';
import { resultReply } from '../../mcp/protocol/messages.js';
import { CallRecorder } from './call-recorder.js';
import type { RecordingsRepository } from './recordings.repository.js';

describe('a recorded call', () => {
  verifies(
    'connection:recording:on',
    'has a final result: input requests, tasks and other methods are not recorded',
    async () => {
      const events = new ConnectionEvents();
      const insert = jest.fn(async (_id: string, call: { tool: string }) => void call);
      const rows = { lockActive: async () => ({ calls: 0, bytes: 0 }), insert } as unknown as RecordingsRepository;
      const database = { transaction: (work: (tx: object) => unknown) => work({}) } as unknown as DataSource;
      const recorder = new CallRecorder(database, rows, new Vault([{ id: 'k1', secret: Buffer.alloc(32) }]), events);
      const connection = { id: 'c', recordingUntil: new Date(Date.now() + 60_000) };
      const answer = (name: string, result: object, method = 'tools/call') => {
        const call = { method, params: JSON.stringify({ name }), timeoutMs: 1_000 };
        events.emit('answered', connection, call, resultReply(JSON.stringify(result), 'modern'));
      };
      answer('asks', { resultType: 'input_required', inputRequests: {} });
      answer('goes-on', { resultType: 'task', task: {} });
      answer('read', { resultType: 'complete', contents: [] }, 'resources/read');
      answer('answers', { resultType: 'complete', content: [] });
      answer('answered-before-2026', { content: [] });
      await recorder.settle();
      expect(insert.mock.calls.map(([, { tool }]) => tool)).toEqual(['answers', 'answered-before-2026']);
    },
  );
});
