import { isObject } from '../../../../platform/text/json.js';
import type { Channel, Listening, McpCall, McpReply, RpcError } from '../../../../mcp/protocol/channel.js';
import { deadlineIn, withinDeadline } from '../../../../mcp/protocol/deadline.js';
import { members } from '../../../../mcp/protocol/json-text.js';
import { LEGACY_VERSIONS, rpcCode, type UpstreamIdentity, type ServerInfo } from '../../../../mcp/protocol/protocol.js';
import { promptResult, resourceResult } from './made-up-content.js';
import type { FrozenServer, Item, MockHistory, Simulator, ToolResult } from './simulator.js';

/** A server that is simulated, with who answers for it. */
export interface SimulatedServer {
  server: FrozenServer;
  /** Answers tool calls. */
  simulator: Simulator;
  history: MockHistory;
}

/** What a request is refused with. */
class RefusedError extends Error {
  constructor(readonly rpc: RpcError) {
    super(rpc.message);
  }
}

/** Answers to MCP in place of a server, out of its frozen lists. No request of it goes to the server it stands for. */
export class SimulatedChannel implements Channel {
  /** @param load what it answers from; asked with each request, and remembered by the one who gives it */
  constructor(private readonly load: () => Promise<SimulatedServer>) {}

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const { server } = await withinDeadline(this.load(), timeoutMs, LATE);
    const has = (name: string, list: unknown) => (list === null ? {} : { [name]: {} });
    return {
      era: 'legacy',
      protocolVersion: LEGACY_VERSIONS[0],
      capabilities: {
        ...has('tools', server.tools),
        ...has('resources', server.resources ?? server.resourceTemplates),
        ...has('prompts', server.prompts),
      },
      serverInfo: serverInfoOf(server),
    };
  }

  async request(call: McpCall): Promise<McpReply> {
    const work = this.answer(call);
    const result = await withinDeadline(work, call.timeoutMs, LATE, call.cancellation).catch((error: unknown) => {
      if (error instanceof RefusedError) return error;
      throw error;
    });
    return result instanceof RefusedError ? errorReply(result.rpc) : resultReply(JSON.stringify(result));
  }

  listen(): Promise<Listening> {
    return Promise.resolve({ honoured: {}, close: async () => undefined });
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {}

  private async answer(call: McpCall): Promise<object> {
    const simulated = await this.load();
    const { server } = simulated;
    const params = paramsOf(call.params);
    switch (call.method) {
      case 'ping':
      case 'logging/setLevel':
        return {};
      case 'tools/list':
        return { tools: required(server.tools, call.method) };
      case 'resources/list':
        return { resources: server.resources ?? required(server.resourceTemplates && [], call.method) };
      case 'resources/templates/list':
        return { resourceTemplates: server.resourceTemplates ?? required(server.resources && [], call.method) };
      case 'prompts/list':
        return { prompts: required(server.prompts, call.method) };
      case 'resources/read':
        return resourceResult(server, params) ?? refuse(`Resource ${String(params.uri)} not found`);
      case 'prompts/get':
        return prompt(server, params);
      case 'completion/complete':
        return { completion: { values: [], total: 0, hasMore: false } };
      case 'tools/call':
        return callTool(simulated, call, params);
      default:
        throw unknownMethod(call.method);
    }
  }
}

const LATE = 'The simulated server did not answer in time.';

async function callTool(simulated: SimulatedServer, call: McpCall, params: Item): Promise<ToolResult> {
  const { server, simulator, history } = simulated;
  const left = deadlineIn(call.timeoutMs);
  const tool = String(params.name);
  if (!server.tools?.some(({ name }) => name === tool)) return refuse(`Tool ${tool} not found`);
  const given = params.arguments ?? {};
  if (!isObject(given)) return refuse('arguments must be an object');
  const asked = { tool, arguments: given };
  const recent = (limit: number) => history.recent(limit);
  const answer = await simulator.prepare({ ...asked, recent, timeoutMs: left() });
  // A call that was given up by now leaves no trace.
  if (call.cancellation?.isCancelled) return refuse('The call was cancelled');
  return history.append(asked, answer);
}

function prompt(server: FrozenServer, params: Item): object {
  const found = server.prompts?.find(({ name }) => name === params.name);
  if (!found) return refuse(`Prompt ${String(params.name)} not found`);
  const result = promptResult(found, isObject(params.arguments) ? params.arguments : {});
  return typeof result === 'string' ? refuse(result) : result;
}

function serverInfoOf({ serverInfo }: FrozenServer): ServerInfo {
  const { name, version } = serverInfo ?? {};
  return {
    ...serverInfo,
    name: typeof name === 'string' ? name : 'simulated',
    version: typeof version === 'string' ? version : '',
  };
}

/** The list of a kind that the server has. */
function required<T>(list: T | null, method: string): T {
  if (list === null) throw unknownMethod(method);
  return list;
}

function unknownMethod(method: string): RefusedError {
  return new RefusedError({ code: rpcCode.methodNotFound, message: `Method not found: ${method.slice(0, 100)}` });
}

function refuse(message: string): never {
  throw new RefusedError({ code: rpcCode.invalidParams, message: `MCP error -32602: ${message}` });
}

function paramsOf(text: string | undefined): Item {
  const params: unknown = text === undefined ? {} : JSON.parse(text);
  return isObject(params) ? params : {};
}

function resultReply(result: string): McpReply {
  const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
  const parts = members(text);
  return { text, id: parts.get('id') ?? null, result: parts.get('result') ?? null, error: null, era: 'legacy' };
}

function errorReply(error: RpcError): McpReply {
  const text = `{"jsonrpc":"2.0","id":1,"error":${JSON.stringify(error)}}`;
  return { text, id: members(text).get('id') ?? null, result: null, error, era: 'legacy' };
}
