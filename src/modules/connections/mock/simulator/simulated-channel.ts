import { setTimeout as sleep } from 'node:timers/promises';
import { DEPTH_MAX } from '../../../../platform/database/storable.js';
import { isObject, isWithinDepth, type JsonObject } from '../../../../platform/text/json.js';
import type {
  Channel,
  ClientAnswer,
  Listening,
  McpCall,
  McpReply,
  RpcError,
} from '../../../../mcp/protocol/channel.js';
import { deadlineIn, withinDeadline } from '../../../../mcp/protocol/deadline.js';
import { members } from '../../../../mcp/protocol/json-text.js';
import { answerText } from '../../../../mcp/protocol/messages.js';
import { LEGACY_VERSIONS, rpcCode, type UpstreamIdentity } from '../../../../mcp/protocol/protocol.js';
import type { Answer, Answerer, FrozenServer, PastCall, Simulator, ToolCall, ToolResult } from './simulator.js';

/** Orders the calls of one mock over all processes. */
export interface CallHistory {
  recent(limit: number): Promise<PastCall[]>;
  append(call: ToolCall, answerer: Answerer): Promise<Answer>;
}

export interface SimulatedServer {
  server: FrozenServer;
  simulator: Simulator;
  history: CallHistory;
}

class RefusedError extends Error {
  constructor(readonly rpc: RpcError) {
    super(rpc.message);
  }
}

/** Responds to MCP requests from the frozen lists of a server. Sends nothing to that server. */
export class SimulatedChannel implements Channel {
  /** @param load runs for each request, so it should cache */
  constructor(private readonly load: () => Promise<SimulatedServer>) {}

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const { server } = await withinDeadline(this.load(), timeoutMs, TIMEOUT_MESSAGE);
    const { name, version } = server.serverInfo ?? {};
    const has = (capability: string, list: unknown) => (list === null ? {} : { [capability]: {} });
    return {
      era: 'legacy',
      protocolVersion: LEGACY_VERSIONS[0],
      capabilities: {
        ...has('tools', server.tools),
        ...has('resources', server.resources ?? server.resourceTemplates),
        ...has('prompts', server.prompts),
      },
      serverInfo: {
        ...server.serverInfo,
        name: typeof name === 'string' ? name : 'simulated',
        version: typeof version === 'string' ? version : '',
      },
    };
  }

  async request(call: McpCall): Promise<McpReply> {
    const work = this.answerCall(call).then(
      (result): ClientAnswer => ({ result: JSON.stringify(result) }),
      (error: unknown) => {
        if (error instanceof RefusedError) return { error: error.rpc };
        throw error;
      },
    );
    const answer = await withinDeadline(work, call.timeoutMs, TIMEOUT_MESSAGE, call.cancellation);
    const text = answerText('1', answer);
    const parts = members(text);
    const error = 'error' in answer ? answer.error : null;
    return { text, id: parts.get('id') ?? null, result: parts.get('result') ?? null, error, era: 'legacy' };
  }

  listen(): Promise<Listening> {
    return Promise.resolve({ honoured: {}, close: async () => undefined });
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {}

  private async answerCall(call: McpCall): Promise<object> {
    const simulated = await this.load();
    const { server } = simulated;
    const sent: unknown = call.params === undefined ? {} : JSON.parse(call.params);
    const params = isObject(sent) ? sent : {};
    switch (call.method) {
      case 'ping':
      case 'logging/setLevel':
        return {};
      case 'tools/list':
        return { tools: requireList(server.tools, call.method) };
      case 'resources/list':
        return { resources: server.resources ?? requireList(server.resourceTemplates && [], call.method) };
      case 'resources/templates/list':
        return { resourceTemplates: server.resourceTemplates ?? requireList(server.resources && [], call.method) };
      case 'prompts/list':
        return { prompts: requireList(server.prompts, call.method) };
      case 'resources/read':
        return resourceResult(server, params) ?? refuse(`Resource ${String(params.uri)} not found`);
      case 'prompts/get': {
        const name = String(params.name);
        const prompt = server.prompts?.find((offered) => offered.name === name);
        if (!prompt) return refuse(`Prompt ${name} not found`);
        const args = isObject(params.arguments) ? params.arguments : {};
        const declared = Array.isArray(prompt.arguments) ? (prompt.arguments as JsonObject[]) : [];
        const missing = declared.find(
          (argument) => argument.required === true && typeof args[String(argument.name)] !== 'string',
        );
        if (missing) return refuse(`Invalid arguments for prompt ${name}: ${String(missing.name)} is required`);
        const listed = Object.entries(args).map(([argument, value]) => `${argument}: ${String(value)}`);
        const described = typeof prompt.description === 'string' ? prompt.description : name;
        const text = [described, ...listed].join('\n');
        return { description: described, messages: [{ role: 'user', content: { type: 'text', text } }] };
      }
      case 'completion/complete':
        return { completion: { values: [], total: 0, hasMore: false } };
      case 'tools/call':
        return callTool(simulated, call, params);
      default:
        throw unknownMethod(call.method);
    }
  }
}

const TIMEOUT_MESSAGE = 'The simulated server did not answer in time.';

async function callTool(simulated: SimulatedServer, call: McpCall, params: JsonObject): Promise<ToolResult> {
  const { server, simulator, history } = simulated;
  const msLeft = deadlineIn(call.timeoutMs);
  const tool = String(params.name);
  if (!server.tools?.some(({ name }) => name === tool)) return refuse(`Tool ${tool} not found`);
  const args = params.arguments ?? {};
  if (!isObject(args)) return refuse('arguments must be an object');
  // Simulators read arguments recursively.
  if (!isWithinDepth(args, DEPTH_MAX)) return refuse(`arguments must not be nested deeper than ${DEPTH_MAX} levels`);
  const toolCall = { tool, arguments: args };
  const recent = (limit: number) => history.recent(limit);
  const answerer = await simulator.prepare({ ...toolCall, recent, timeoutMs: msLeft() });
  // A cancelled call is not recorded.
  if (call.cancellation?.isCancelled) return refuse('The call was cancelled');
  const { result, delayMs } = await history.append(toolCall, answerer);
  // After the lock is released, so that a slow result delays no other call.
  if (delayMs) await sleep(delayMs, undefined, { ref: false });
  return result;
}

function requireList<T>(list: T | null, method: string): T {
  if (list === null) throw unknownMethod(method);
  return list;
}

function unknownMethod(method: string): RefusedError {
  return new RefusedError({ code: rpcCode.methodNotFound, message: `Method not found: ${method.slice(0, 100)}` });
}

function refuse(message: string): never {
  throw new RefusedError({ code: rpcCode.invalidParams, message: `MCP error -32602: ${message}` });
}

/** Returns sample content of the media type, always the same. Null for an unknown resource. */
function resourceResult({ resources, resourceTemplates }: FrozenServer, { uri }: JsonObject): object | null {
  if (typeof uri !== 'string') return null;
  const resource =
    resources?.find((candidate) => candidate.uri === uri) ??
    resourceTemplates?.find(({ uriTemplate }) => typeof uriTemplate === 'string' && isFrom(uriTemplate, uri));
  if (!resource) return null;
  const mimeType = typeof resource.mimeType === 'string' ? resource.mimeType : 'text/plain';
  const text = `${String(resource.name)}: simulated.`;
  const head = { uri, mimeType };
  if (/json/.test(mimeType)) return { contents: [{ ...head, text: JSON.stringify({ uri, simulated: true }) }] };
  if (/^(image|audio|video)\/|octet-stream|pdf|zip/.test(mimeType)) {
    return { contents: [{ ...head, blob: Buffer.from(text).toString('base64') }] };
  }
  return { contents: [{ ...head, text }] };
}

/** Returns true if a URI can come from a template (RFC 6570); each expression matches any string. Linear in both. */
function isFrom(template: string, uri: string): boolean {
  const [first = '', ...rest] = template.split(/\{[^{}]*\}/);
  if (!uri.startsWith(first)) return false;
  let at = first.length;
  for (const [place, literal] of rest.entries()) {
    const isLast = place === rest.length - 1;
    const index = isLast && literal !== '' ? uri.lastIndexOf(literal) : uri.indexOf(literal, at);
    if (index < at || (isLast && literal !== '' && index + literal.length !== uri.length)) return false;
    at = isLast && literal === '' ? uri.length : index + literal.length;
  }
  return at === uri.length;
}
