import { afterAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { cleanUpPrograms, readySettings, runProgram } from '../support/program.js';
import { startTelling } from '../support/special-upstreams/telling-server.js';
import { until } from '../support/until.js';
import { closing } from '../support/upstream/upstream-clients.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

afterAll(cleanUpPrograms, SLOW_MS);

describe('a session of a service that was killed', () => {
  verifies(
    'mcp:session-restart',
    'is 404 if it had subscribed, and the next one has all notifications again',
    async () => {
      const server = closing(await startTelling());
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
      const subscribeAndHear = async ({ client, heard }: Awaited<ReturnType<typeof connect>>) => {
        await client.subscribeResource({ uri: 'docs://a' });
        // The stream of the session opens beside the calls: told again until it is heard.
        await until(async () => {
          await server.tell();
          return heard.includes('notifications/resources/updated');
        }, 'an update comes');
        heard.length = 0;
        await server.tell();
        await until(() => new Set(heard).size === 2, 'both changes come');
      };

      const first = runProgram('main.js', settings);
      await first.url();
      await put('/namespaces/restarts', {});
      await put('/connect/restarts/telling', { mcpUrl: server.url });
      const [subscribed, plain] = [await connect(), await connect()];
      await subscribeAndHear(subscribed);
      first.kill('SIGKILL');
      await first.ended;

      await runProgram('main.js', settings).url();
      const again = await connect(plain.transport.sessionId);
      expect(await again.client.callTool({ name: 'any' })).toEqual({ content: [] });
      const lost = await connect(subscribed.transport.sessionId);
      await expect(lost.client.callTool({ name: 'any' })).rejects.toMatchObject({ code: 404 });
      await subscribeAndHear(await connect());
    },
    SLOW_MS,
  );
});
