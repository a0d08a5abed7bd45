import type { ApiPropertyOptions } from '#api-docs';
import type { NamedCaller } from './invocation.types.js';

/** The caller of a request. Names are null after the account was deleted, or the key revoked. */
export interface CallerDto {
  account: { id: string; name: string | null };
  credential: { id: string; name: string | null; kind: NamedCaller['kind'] };
  client: string | null;
}

const nullableText = { type: 'string', nullable: true } as const;

export const callerSchema: ApiPropertyOptions = {
  type: 'object',
  nullable: true,
  selfRequired: true,
  description:
    'Sender of the request; null for requests of this service itself, and for records of a server that runs elsewhere.',
  required: ['account', 'credential', 'client'],
  properties: {
    account: {
      type: 'object',
      required: ['id', 'name'],
      properties: { id: { type: 'string' }, name: { ...nullableText, description: 'Null after its deletion.' } },
    },
    credential: {
      type: 'object',
      required: ['id', 'name', 'kind'],
      properties: {
        id: { type: 'string' },
        name: {
          ...nullableText,
          description:
            'Name of the API key, or of the app that logged in by OAuth; for a session `browser on Windows` or the like. Null after its end.',
        },
        kind: { type: 'string', enum: ['key', 'oauth', 'session'] },
      },
    },
    client: {
      ...nullableText,
      description: 'The name that the MCP client gave itself; null if it gave none, and for REST.',
    },
  },
};

export const callerExample: CallerDto = {
  account: { id: '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11', name: 'acme' },
  credential: { id: '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10', name: 'laptop', kind: 'key' },
  client: 'claude-code',
};

export function toCallerDto(caller: NamedCaller | null): CallerDto | null {
  if (caller === null) return null;
  const { account, accountName, credential, credentialName, kind, client } = caller;
  return {
    account: { id: account, name: accountName },
    credential: { id: credential, name: credentialName, kind },
    client,
  };
}
