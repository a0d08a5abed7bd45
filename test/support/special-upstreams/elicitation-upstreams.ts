import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import {
  CallToolRequestSchema,
  ElicitResultSchema,
  ListToolsRequestSchema,
  SubscribeRequestSchema,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  McpServer as McpServerV2,
} from '@modelcontextprotocol/server';
import { createServer } from 'node:http';
import { z } from 'zod';
import type { SdkUpstream } from './sdk-upstream.js';
import { startSdkV1 } from './sdk-upstream.js';
import { listen, shut } from '../upstream/upstream-net.js';

/**
 * A server made with an official SDK whose tool `ask` asks its user's name and greets them, whose tool `steps` reports
 * three steps, and that can announce changed tools.
 */
export interface ElicitationUpstream extends SdkUpstream {
  toolsChanged(): void;
  /** Subscribed resources, in the order of the subscriptions. */
  subscribed: string[];
  resourceUpdated(uri: string): void;
}

const message = 'What is your name?';
const requestedSchema = {
  type: 'object' as const,
  properties: { name: { type: 'string' as const } },
  required: ['name'],
};
const inputSchema = { type: 'object' as const };
const greeting = (name: unknown) => ({ content: [{ type: 'text' as const, text: `Hello ${String(name)}` }] });
const noAnswer = { content: [{ type: 'text' as const, text: 'Nobody said' }] };

/** With the v1 SDK (1.32) and sessions: asks in the middle of the call. */
export async function startElicitationV1(): Promise<ElicitationUpstream> {
  const servers = new Set<ServerV1>();
  const subscribed: string[] = [];
  const upstream = await startSdkV1({
    stateful: true,
    json: false,
    make: () => {
      const made = new McpServerV1(
        { name: 'asking-v1', version: '1' },
        { capabilities: { tools: { listChanged: true }, resources: { subscribe: true } } },
      );
      const { server } = made;
      servers.add(server);
      server.setRequestHandler(ListToolsRequestSchema, () => ({
        tools: ['ask', 'steps'].map((name) => ({ name, inputSchema })),
      }));
      server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => {
        subscribed.push(uri);
        return {};
      });
      server.setRequestHandler(CallToolRequestSchema, async ({ params }, { sendRequest, sendNotification }) => {
        if (params.name === 'steps') {
          const progressToken = params._meta?.progressToken;
          for (let progress = 1; progressToken !== undefined && progress <= 3; progress += 1) {
            await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
          }
          return noAnswer;
        }
        const asked = { method: 'elicitation/create' as const, params: { message, requestedSchema } };
        const { action, content } = await sendRequest(asked, ElicitResultSchema);
        return action === 'accept' ? greeting(content?.name) : noAnswer;
      });
      return made;
    },
  });
  const tell = (say: (server: ServerV1) => Promise<void>) => {
    for (const server of servers) void say(server).catch(() => undefined);
  };
  return {
    ...upstream,
    subscribed,
    toolsChanged: () => tell((server) => server.sendToolListChanged()),
    resourceUpdated: (uri) => tell((server) => server.sendResourceUpdated({ uri })),
  };
}

/**
 * With the v1 SDK: its tool `later` runs as a task only and greets after 100 ms, except for the name `nobody`, which it
 * never answers.
 */
export async function startTasksV1(): Promise<SdkUpstream & { store: InMemoryTaskStore }> {
  const store = new InMemoryTaskStore();
  const completions: NodeJS.Timeout[] = [];
  const upstream = await startSdkV1({
    stateful: true,
    json: false,
    make: () => {
      const made = new McpServerV1(
        { name: 'tasks-v1', version: '1' },
        {
          capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
          taskStore: store,
          taskMessageQueue: new InMemoryTaskMessageQueue(),
        },
      );
      made.experimental.tasks.registerToolTask(
        'later',
        { description: 'Takes its time', inputSchema: { name: z.string() }, execution: { taskSupport: 'required' } },
        {
          createTask: async ({ name }, { taskStore, taskRequestedTtl }) => {
            const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
            if (name !== 'nobody') {
              completions.push(
                setTimeout(() => void taskStore.storeTaskResult(task.taskId, 'completed', greeting(name)), 100),
              );
            }
            return { task };
          },
          getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
          getTaskResult: async (_, { taskId, taskStore }) => (await taskStore.getTaskResult(taskId)) as CallToolResult,
        },
      );
      made.registerTool('now', { description: 'Answers at once' }, () => greeting('now'));
      return made;
    },
  });
  return {
    ...upstream,
    store,
    close: () => {
      completions.forEach(clearTimeout);
      store.cleanup();
      return upstream.close();
    },
  };
}

/** With the v2 SDK (2.4): asks by what it answers. `reject` serves 2026-07-28 alone. */
export async function startElicitationV2(legacy: 'stateless' | 'reject'): Promise<ElicitationUpstream> {
  const subscribed: string[] = [];
  const handler = createMcpHandler(
    () => {
      const server = new McpServerV2(
        { name: 'asking-v2', version: '1' },
        { capabilities: { tools: { listChanged: true }, resources: { subscribe: true } } },
      );
      const schema = fromJsonSchema<object>(inputSchema);
      server.registerTool('ask', { inputSchema: schema }, (_, { mcpReq }) => {
        const said = acceptedContent(mcpReq.inputResponses, 'name');
        if (said) return greeting(said.name);
        if (mcpReq.inputResponses) return noAnswer;
        return inputRequired({
          inputRequests: { name: inputRequired.elicit({ message, requestedSchema }) },
          requestState: 'asked',
        });
      });
      server.registerTool('steps', { inputSchema: schema }, async (_, { mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= 3; progress += 1) {
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } });
        }
        return noAnswer;
      });
      return server;
    },
    { legacy },
  );
  const toNode = toNodeHandler(handler);
  const server = createServer((req, res) => void toNode(req, res));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    subscribed,
    toolsChanged: () => handler.notify.toolsChanged(),
    resourceUpdated: (uri) => handler.notify.resourceUpdated(uri),
    close: async () => {
      await handler.close();
      await shut(server);
    },
  };
}
