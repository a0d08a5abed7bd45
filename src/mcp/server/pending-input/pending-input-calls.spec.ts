import { describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../../config/env.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import type { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { McpRequest } from '../mcp-request.js';
import { PendingInputCalls } from './pending-input-calls.js';
import { STATE_MARK, StateRefusedError } from './pending-input-call.js';

const vault = new Vault([{ id: 'k1', secret: Buffer.alloc(32, 1) }]);
const env = loadEnv({ ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` });
const calls = new PendingInputCalls(env, vault, {} as InternalClient, new RevocationRegistry());

/** The ticket in a request of alice with a state that was sealed for this caller and is good until then. */
function stateFor(caller: string, until: number) {
  const sealed = vault.seal(JSON.stringify(['process.call', null, until]), `pending call of ${caller}`);
  const asked = { params: { requestState: `${STATE_MARK}${sealed}` }, request: { caller: 'alice' } };
  return calls.stateOf(asked as unknown as McpRequest);
}

describe('the state of a call that waits for input', () => {
  it('resumes the call for its own caller until its end, and is refused afterwards', () => {
    const until = Date.now() + 60_000;
    expect(stateFor('alice', until)).toEqual({ name: 'process.call', url: null, until });
    expect(() => stateFor('alice', Date.now() - 1)).toThrow(StateRefusedError);
  });

  it('is refused for another caller', () => {
    expect(stateFor('bob', Date.now() + 60_000)).toBeNull();
  });
});
