import { contentResult } from './upstream-content.js';
import { LEGACY_VERSIONS, MODERN_VERSION, toModernResult } from './upstream-eras.js';
import { RawJson, RpcError, type Exchange, type RpcMessage } from './upstream-exchange.js';
import { defaultTools, RAW_TOOL_RESULT, textResult, type ToolCall, type ToolDef } from './upstream-tools.js';

/** Behaviour of the server, without its transport. */
export interface RpcOptions {
  /** Own tools instead of the default set. */
  tools?: ToolDef[];
  /** Tools per page of `tools/list`. Default: all at once. */
  pageSize?: number;
  /** `initialize` answers after this many milliseconds. */
  delayInitializeMs?: number;
  /** Supports 2026-07-28 only: no `initialize`, no session. */
  modernOnly?: boolean;
  /** Put into `serverInfo.icons`. */
  iconUrl?: string;
  /** JSON text that tool `raw` answers as its result, byte for byte. Default `RAW_TOOL_RESULT`. */
  rawToolResult?: string;
  /** Fields over the default `{ name: 'upstream', title: 'Test upstream', version: '1.0.0' }`. */
  serverInfo?: Record<string, unknown>;
}

const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };

/** Answers JSON-RPC requests: the methods of the server, and the calls that wait. */
export class UpstreamRpc {
  readonly serverInfo: object;
  private readonly tools: ToolDef[];
  private readonly byName = new Map<string, ToolDef>();
  private readonly isModern: boolean;
  private readonly waiting = new Set<() => void>();
  private readonly asked = new Map<string, (answer: RpcMessage) => void>();

  constructor(private readonly options: RpcOptions) {
    const icons = options.iconUrl ? { icons: [{ src: options.iconUrl }] } : {};
    this.serverInfo = { name: 'upstream', title: 'Test upstream', version: '1.0.0', ...icons, ...options.serverInfo };
    this.isModern = options.modernOnly ?? false;
    const defaults = defaultTools(options.rawToolResult ?? RAW_TOOL_RESULT);
    this.tools = options.tools ?? defaults;
    for (const tool of this.tools) {
      const call = tool.call ?? defaults.find(({ name }) => name === tool.name)?.call;
      this.byName.set(tool.name, { ...tool, call: call ?? (({ args }) => textResult(JSON.stringify(args))) });
    }
  }

  /** Lets the calls answer that `hold` and `slow` keep back at this moment. */
  release(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const go of waiting) go();
  }

  /** Takes the client's answer to a request of the server. */
  accept(answer: RpcMessage): void {
    this.asked.get(String(answer.id))?.(answer);
    this.asked.delete(String(answer.id));
  }

  /** The result of a request. Throws `RpcError`, `CutOff`, or an abort when the client is gone. */
  async handle(message: RpcMessage, exchange: Exchange): Promise<object> {
    const method = String(message.method);
    const params = (message.params ?? {}) as RpcMessage;
    const result = await this.dispatch(method, params, exchange);
    if (!this.isModern || result instanceof RawJson) return result;
    return toModernResult(method, result, this.serverInfo);
  }

  private async dispatch(method: string, params: RpcMessage, exchange: Exchange): Promise<object> {
    if (method === 'tools/list') return this.listTools(params.cursor);
    if (method === 'tools/call') return this.callTool(params, exchange);
    const content = contentResult(method, params, this.isModern);
    if (content) return content;
    if (this.isModern && method === 'server/discover') {
      return { supportedVersions: [MODERN_VERSION], capabilities, instructions: 'A server for tests.' };
    }
    if (!this.isModern && method === 'initialize') return this.initialize(params, exchange);
    if (!this.isModern && method === 'ping') return {};
    throw new RpcError(-32601, 'Method not found', undefined, this.isModern ? 404 : 200);
  }

  private async initialize(params: RpcMessage, exchange: Exchange): Promise<object> {
    if (typeof params.protocolVersion !== 'string') throw new RpcError(-32602, 'protocolVersion is missing');
    if (this.options.delayInitializeMs) await exchange.delay(this.options.delayInitializeMs);
    const offered = LEGACY_VERSIONS.find((version) => version === params.protocolVersion);
    const protocolVersion = offered ?? LEGACY_VERSIONS[0];
    return { protocolVersion, capabilities, serverInfo: this.serverInfo, instructions: 'A server for tests.' };
  }

  private listTools(cursor: unknown): object {
    const pageSize = this.options.pageSize ?? Infinity;
    const from = cursor === undefined ? 0 : fromCursor(cursor);
    if (!(from >= 0 && from < Math.max(this.tools.length, 1))) throw new RpcError(-32602, 'Invalid cursor');
    const to = from + pageSize;
    const tools = this.tools.slice(from, to).map(({ call, ...listed }) => listed);
    return { tools, ...(to < this.tools.length ? { nextCursor: toCursor(to) } : {}) };
  }

  private async callTool(params: RpcMessage, exchange: Exchange): Promise<object> {
    const tool = this.byName.get(String(params.name));
    if (!tool?.call) throw new RpcError(-32602, `Unknown tool: ${String(params.name)}`);
    const call: ToolCall = {
      args: (params.arguments ?? {}) as Record<string, unknown>,
      params,
      exchange,
      isModern: this.isModern,
      held: () => new Promise((resolve) => this.waiting.add(resolve)),
      answerTo: (id) => new Promise((resolve) => this.asked.set(id, resolve)),
    };
    return (await tool.call(call)) as object;
  }
}

/** Opaque on purpose, and not the plain number: a client that counts for itself is found out. */
function toCursor(index: number): string {
  return Buffer.from(`tools after ${index}`).toString('base64url');
}

function fromCursor(cursor: unknown): number {
  const text = Buffer.from(String(cursor), 'base64url').toString('utf8');
  return Number(/^tools after (\d+)$/.exec(text)?.[1] ?? -1);
}
