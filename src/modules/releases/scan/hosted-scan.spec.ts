import { expect, it } from '@jest/globals';
import { Tuning } from '../../../config/tuning.js';
import { UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import type { Release } from '../release.entity.js';
import { HostedScan } from './hosted-scan.js';

it('the program of a scan is removed after its sessions have ended, because closing a session would start it again', async () => {
  const order: string[] = [];
  // One session for each path that is tried.
  const sessions: (() => void)[] = [];
  const channel = {
    open: () => Promise.reject(new UpstreamError('It does not answer')),
    close: () => new Promise<void>((resolve) => sessions.push(resolve)).then(() => void order.push('closed')),
  };
  const forgotten = new Promise<void>((resolve) => {
    const hosting = {
      forget: async (ownerId: string) => {
        order.push(`forgot ${ownerId}`);
        resolve();
      },
    };
    const scan = new HostedScan({ channelTo: () => channel } as never, hosting as never, new Tuning());
    const release = { id: 'r1', configSchema: {}, serverCard: null, hosting: { stateful: true } } as unknown as Release;
    const lease = { log: () => Promise.resolve(), whileHeld: <T>(work: Promise<T>) => work };
    const result = scan.run(release, lease);
    void result.then(() => {
      order.push('result');
      for (const end of sessions) end();
    });
  });
  await forgotten;
  expect(order).toEqual(['result', 'closed', 'closed', 'forgot r1']);
});
