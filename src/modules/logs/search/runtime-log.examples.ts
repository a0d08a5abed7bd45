import type { OpenAPIObject } from '#api-docs';
import { callerExample } from '../caller.types.js';

type SchemaObject = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>[string];

const failed = {
  id: '019c0a5e-7d20-7c3e-9a57-4f8f3f1f6a10',
  timestamp: '2026-11-20 10:15:00',
  at: '2026-11-20T10:15:00.123Z',
  request: { method: 'POST', url: '/run/acme--everything' },
  response: { status: 200, outcome: 'exception' },
  duration: { cpuMs: 4, wallMs: 31 },
  logs: [
    {
      timestamp: '2026-11-20 10:15:00',
      at: '2026-11-20T10:15:00.123Z',
      level: 'info',
      message: 'Looking up the weather in Ulm',
    },
  ],
  exceptions: [
    { timestamp: '2026-11-20 10:15:00', at: '2026-11-20T10:15:00.123Z', name: 'RangeError', message: 'No such day' },
  ],
  rpcMethod: 'tools/call',
  tool: 'forecast',
  caller: callerExample,
  releaseId: '0b6f2c1e-7d0f-4d8e-9a57-4f8f3f1f6a10',
  leftOut: 0,
};

export const runtimeLogExample = { invocations: [failed], total: 1, totalIsExact: true, leftOut: 0 };

/** Schema of a sent record, whose fields are all optional. */
const sentInvocation: SchemaObject = {
  type: 'object',
  properties: {
    id: {
      type: 'string',
      format: 'uuid',
      description:
        'A record with an id that is sent again is stored once. An id that is not of version 7 requires a timestamp.',
    },
    timestamp: { type: 'string', description: 'When the request came; at most 24 hours ago. Default: now.' },
    request: { type: 'object', properties: { method: { type: 'string' }, url: { type: 'string' } } },
    response: { type: 'object', properties: { status: { type: 'integer' }, outcome: { type: 'string' } } },
    duration: { type: 'object', properties: { cpuMs: { type: 'number' }, wallMs: { type: 'number' } } },
    logs: {
      type: 'array',
      maxItems: 1_000,
      items: {
        type: 'object',
        required: ['message'],
        properties: { timestamp: { type: 'string' }, level: { type: 'string' }, message: { type: 'string' } },
      },
    },
    exceptions: {
      type: 'array',
      maxItems: 1_000,
      items: {
        type: 'object',
        properties: { timestamp: { type: 'string' }, name: { type: 'string' }, message: { type: 'string' } },
      },
    },
    rpcMethod: { type: 'string' },
    tool: { type: 'string' },
  },
};

const sentInvocations: SchemaObject = { type: 'array', maxItems: 1_000, items: sentInvocation };

export const sentInvocationsSchema: SchemaObject = {
  oneOf: [{ type: 'object', required: ['invocations'], properties: { invocations: sentInvocations } }, sentInvocations],
};

export const sentInvocationsExample = {
  invocations: [
    {
      request: { method: 'POST', url: '/mcp' },
      response: { status: 200, outcome: 'ok' },
      duration: { wallMs: 31 },
      logs: [{ level: 'info', message: 'Looking up the weather in Ulm' }],
      rpcMethod: 'tools/call',
      tool: 'forecast',
    },
  ],
};

export const acceptedInvocationsExample = { accepted: 1, ids: [failed.id] };
