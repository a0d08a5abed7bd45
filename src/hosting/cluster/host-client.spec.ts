import { describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import {
  RequestRefusedError,
  type InternalAnswerHandler,
  type InternalClient,
} from '../../platform/internal-http/internal-client.js';
import { HostClient } from './host-client.js';
import type { LiveHost } from './host-directory.js';
import type { AttemptHandler } from './retrying-dispatch.js';

/** The error of a request that the host refuses so. */
function refusedBy(refusal: Error): Error | undefined {
  const send = (_call: unknown, handler: InternalAnswerHandler) => handler.onFailure(refusal);
  const client = new HostClient({ send } as unknown as InternalClient, loadEnv({}));
  let found: Error | undefined;
  const handler = { onResponseError: (_: unknown, error: Error) => (found = error) } as unknown as AttemptHandler;
  const ref = { engine: 'worker', ownerId: 'o', versionId: 'v', isStateful: false };
  client.send({ id: 'h', epoch: '1', url: 'http://127.0.0.1:1' } as LiveHost, ref as never, {} as never, handler);
  return found;
}

describe('a host that refuses a request', () => {
  verifies('health:clock', 'because of its clock is not reported as unreachable: the error names the skew', () => {
    expect(refusedBy(new RequestRefusedError('404', 3_600))).toMatchObject({
      name: 'HostingUnavailableError',
      message: 'The clocks of two processes of this service differ by 3600 s: its operator must set them.',
    });
    expect(refusedBy(new RequestRefusedError('404'))).toMatchObject({ name: 'HostAwayError' });
  });
});
