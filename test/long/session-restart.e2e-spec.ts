// Runs alone: it kills processes.
import { afterAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { cleanUpPrograms, readySettings, runProgram } from '../support/program.js';
import { startNotificationServer } from '../support/special-upstreams/notification-server.js';
import { until } from '../support/until.js';
import { closing } from '../support/upstream/upstream-clients.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

afterAll(cleanUpPrograms, SLOW_MS);

/** Changes that are counted after each kill. */
const CHANGES = 50;

describe('a session of a service that was killed', () => {
  verifies(
    'mcp:session-restart',
    'is 404 if it had subscribed, and the next one has each update once, as after a kill of the server',
    async () => {
      const server = closing(await startNotificationServer());
      const key = generateApiKey();
      const port = await freePort();
      const settings = { ...(await readySettings(key)), PORT: String(port), EGRESS_ALLOW: 'loopback' };
      const authorization = `Bearer ${key}`;
      const origin = `http://127.0.0.1:${port}`;
      const put = (path: string, body: object) =>
        fetch(`${origin}${path}`, {
          method: 'PUT',
          headers: { authorization, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });

      const connect = async (sessionId?: string) => {
        const heard: string[] = [];
        const client = new Client({ name: 'spec', version: '1.0.0' });
        client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void heard.push(method));
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ method }) => void heard.push(method));
        const requestInit = { headers: { authorization } };
        const url = new URL(`${origin}/connect/restarts/telling/mcp`);
        const transport = new StreamableHTTPClientTransport(url, { requestInit, sessionId });
        if (sessionId !== undefined) transport.setProtocolVersion('2025-11-25');
        await client.connect(transport);
        closing(client);
        return { client, transport, heard };
      };
      const updated = 'notifications/resources/updated';
      /** Tells again and again, but never while an update may be on its way. */
      const untilHeard = ({ heard }: Awaited<ReturnType<typeof connect>>) => {
        heard.length = 0;
        return until(async () => {
          await server.tell();
          return until(() => heard.includes(updated), 'an update comes', 2_000).catch(() => false);
        }, 'an update comes at last');
      };
      /** How many updates come for {@link CHANGES} changes. Each is waited for, so that one too many is counted. */
      const counted = async ({ heard }: Awaited<ReturnType<typeof connect>>) => {
        heard.length = 0;
        const count = () => heard.filter((method) => method === updated).length;
        for (let told = 1; told <= CHANGES; told += 1) {
          await server.tell();
          await until(() => count() >= told, `update ${told} comes`);
        }
        expect(new Set(heard).size).toBe(2);
        return count();
      };

      const first = runProgram('main.js', settings);
      await first.url();
      await put('/namespaces/restarts', {});
      await put('/connect/restarts/telling', { mcpUrl: server.url });
      const [subscribed, plain] = [await connect(), await connect()];
      await subscribed.client.subscribeResource({ uri: 'docs://a' });
      // The stream of the session opens beside the calls.
      await untilHeard(subscribed);
      expect(await counted(subscribed)).toBe(CHANGES);

      await server.restart();
      await untilHeard(subscribed);
      expect(await counted(subscribed)).toBe(CHANGES);

      first.kill('SIGKILL');
      await first.ended;

      await runProgram('main.js', settings).url();
      const again = await connect(plain.transport.sessionId);
      expect(await again.client.callTool({ name: 'any' })).toEqual({ content: [] });
      const lost = await connect(subscribed.transport.sessionId);
      await expect(lost.client.callTool({ name: 'any' })).rejects.toMatchObject({ code: 404 });
      const next = await connect();
      await next.client.subscribeResource({ uri: 'docs://a' });
      await untilHeard(next);
      expect(await counted(next)).toBe(CHANGES);
    },
    SLOW_MS,
  );
});
