import { createServer } from 'node:http';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Env } from '../../../src/config/env.js';
import { Tuning } from '../../../src/config/tuning.js';
import type { Channel } from '../../../src/mcp/protocol/channel.js';
import { McpHttpServer } from '../../../src/mcp/server/mcp-http-server.js';
import { SessionMarksRepository } from '../../../src/mcp/server/sessions/session-mark.repository.js';
import { McpTasksRepository } from '../../../src/mcp/server/tasks/mcp-task.repository.js';
import { MCP_SERVER_PROVIDERS } from '../../../src/mcp/server/mcp-server.module.js';
import { InternalClient } from '../../../src/platform/internal-http/internal-client.js';
import { InternalSignatures } from '../../../src/platform/internal-http/internal-signatures.js';
import { RevocationRegistry } from '../../../src/platform/http/revocation-registry.js';
import { OpenRequests } from '../../../src/platform/http/open-requests.js';
import { BodyBudget } from '../../../src/platform/http/body/body-budget.js';
import { errorAnswer } from '../../../src/platform/errors/error-body.js';
import { InternalServer } from '../../../src/platform/internal-http/internal-server.js';
import { InternalResumedStreamsController } from '../../../src/mcp/server/resume/internal-resumed-streams.controller.js';
import { RESUMED_STREAMS_PATH } from '../../../src/mcp/server/resume/resumable-streams.js';
import { InternalSseStreamsController } from '../../../src/mcp/server/sse/internal-sse-streams.controller.js';
import { SSE_STREAMS_PATH } from '../../../src/mcp/server/sse/remote-sse-streams.js';
import { Vault } from '../../../src/platform/vault/vault.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { closing } from '../upstream/upstream-clients.js';
import { listen, shut } from '../upstream/upstream-net.js';

type Listener = (data: unknown) => void;

/** Carries messages between fronts of one test as the relay does between processes: later, and as JSON. */
export class TestPubSub {
  /** Keys of marked sessions, as the database of the service stores them. */
  readonly marks = new Set<string>();
  /** Owners and ids of tasks, likewise. */
  readonly tasks: [owner: string, task: string][] = [];
  private readonly topics = new Map<string, Set<Listener>>();

  subscribe(topic: string, listener: Listener): Promise<void> {
    this.topics.set(topic, (this.topics.get(topic) ?? new Set()).add(listener));
    return Promise.resolve();
  }

  publish(topic: string, data: object): void {
    const text = JSON.stringify(data);
    setImmediate(() => this.topics.get(topic)?.forEach((listener) => listener(JSON.parse(text))));
  }
}

/** A served MCP endpoint. */
export interface TestMcpEndpoint<C extends Channel = Channel> {
  url: string;
  /** The channel behind it. */
  channel: C;
  /** The front itself, as the app holds it. */
  front: McpHttpServer;
  /** Does what the process does before it ends. */
  stop: () => void;
}

/**
 * Serves one channel by a front of its own on a free port, until the test is over. The bearer names the caller, and its account unless
 * `X-Account` does. Fronts with
 * one relay are processes of one service.
 */
export async function startMcpEndpoint<C extends Channel>(
  channel: C,
  relay = new TestPubSub(),
): Promise<TestMcpEndpoint<C>> {
  const env = {
    mcpCallTimeoutMs: 5_000,
    baseUrl: 'http://127.0.0.1',
    internalUrl: '',
    isLocalOnly: true,
    encryptionKeys: [{ id: 'k1', secret: Buffer.alloc(32, 7) }],
  };
  const tuning = new Tuning({ upstreamCallTimeoutMs: 5_000 });
  const module = await Test.createTestingModule({
    controllers: [InternalSseStreamsController, InternalResumedStreamsController],
    providers: [
      ...MCP_SERVER_PROVIDERS,
      RevocationRegistry,
      OpenRequests,
      InternalClient,
      InternalServer,
      InternalSignatures,
      { provide: Env, useValue: env },
      { provide: Tuning, useValue: tuning },
      { provide: PubSub, useValue: relay },
      { provide: Vault, useValue: new Vault(env.encryptionKeys) },
      {
        provide: SessionMarksRepository,
        useValue: {
          has: (session: string) => Promise.resolve(relay.marks.has(session)),
          add: (session: string) => Promise.resolve(void relay.marks.add(session)),
        },
      },
      {
        provide: McpTasksRepository,
        useValue: {
          add: (owner: string, task: string) => Promise.resolve(void relay.tasks.push([owner, task])),
          list: (owner: string) =>
            Promise.resolve(relay.tasks.filter(([taskOwner]) => taskOwner === owner).map(([, task]) => task)),
        },
      },
    ],
  }).compile();
  await module.init();
  const front = module.get(McpHttpServer);
  const internal = module.get(InternalSseStreamsController);
  const resumed = module.get(InternalResumedStreamsController);
  const bodies = new BodyBudget(env as unknown as Env, tuning);
  const server = createServer((request, response) => {
    const principal = request.headers.authorization ?? '';
    const account = String(request.headers['x-account'] ?? principal);
    const target = request.url ?? '/';
    bodies.admit(request, response, account);
    const [path = ''] = target.split('?', 1);
    const find = () => Promise.resolve({ channel, account, principal, scopes: null, target: path });
    const served =
      target === SSE_STREAMS_PATH
        ? internal.serveMessage(request, response)
        : target === RESUMED_STREAMS_PATH
          ? resumed.read(request, response)
          : front.serve(request, response, find);
    served.catch((error: unknown) => {
      const { status, headers, body } = errorAnswer(error, 'json-rpc');
      if (response.headersSent) response.destroy();
      else response.writeHead(status, { ...headers, 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  const port = await listen(server);
  env.internalUrl = `http://127.0.0.1:${port}`;
  closing({
    close: async () => {
      await module.close();
      await shut(server);
    },
  });
  const stop = () => {
    for (const provider of MCP_SERVER_PROVIDERS) {
      module.get<Partial<BeforeApplicationShutdown>>(provider).beforeApplicationShutdown?.();
    }
  };
  return { url: `http://127.0.0.1:${port}/mcp`, channel, front, stop };
}
