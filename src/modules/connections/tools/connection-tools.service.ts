import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import type { Cancellation } from '../../../mcp/protocol/cancellation.js';
import { deadlineIn } from '../../../mcp/protocol/deadline.js';
import { UpstreamFailure, UpstreamTimeoutError, withPages } from '../../../mcp/protocol/mcp-errors.js';
import type { Channel, McpReply } from '../../../mcp/protocol/channel.js';
import { memberText, withMember } from '../../../mcp/protocol/json-edit.js';
import { slice } from '../../../mcp/protocol/json-text.js';
import { completeOrRefuse, isErrorResult } from '../../../mcp/protocol/messages.js';
import { originOf } from '../../../mcp/server/mcp-request.js';
import type { ListItem } from '../../../mcp/protocol/list-pages.js';
import { isObject, type JsonObject } from '../../../platform/text/json.js';
import { parseBody } from '../../../platform/http/body/request-body.js';
import { DomainError, InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles, type ConnectionHandle } from '../core/connection-handles.js';
import {
  ConnectionInputError,
  ConnectionInputRequiredError,
  ResourceNotFoundError,
  ToolError,
} from '../core/connections.errors.js';
import { statusAfter } from '../core/connection-status.js';
import { Connection } from '../core/connection.entity.js';
import { LogRecorder, type CallRecord, type RecordedRequest } from '../log/log-recorder.js';

/** Limits the connections of one response, and the concurrent requests to their upstreams. */
const NAMESPACE_CONNECTIONS_MAX = 100;
const NAMESPACE_PARALLEL = 8;

const NAMESPACE_WAIT_MS = 5_000;

/**
 * A tool as its server lists it. @property needsElicitation the server hides it from clients that it cannot ask for
 * input
 */
type ListedTool = JsonObject & { name: string; needsElicitation?: boolean };

/** Capabilities of pages: some servers list a tool only to clients that they can ask for input. */
export const PAGE_CAPABILITIES = { elicitation: { form: {}, url: {} } };

/** Names of granted tools; undefined and null stand for all tools. */
type GrantedTools = readonly string[] | null | undefined;

export interface RestToolCall {
  namespace: OwnedNamespace;
  connectionId: string;
  path: string;
  /** JSON; empty means `{}`. */
  body: string;
  /** The caller; null stands for Slipway itself. */
  caller: Caller | null;
  cancellation: Cancellation;
}

type ListedConnection = Pick<Connection, 'connectionId' | 'name' | 'statusState' | 'statusMessage'>;

/** JSON of upstreams is passed on unchanged. */
@Injectable()
export class ConnectionToolsService {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionHandles: ConnectionHandles,
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly logRecorder: LogRecorder,
  ) {}

  /** @throws ResourceNotFoundError, SuspendedError */
  async requireConnection(namespace: OwnedNamespace, connectionId: string): Promise<void> {
    await this.connectionHandles.find(namespace, connectionId);
  }

  /** Serves requests outside MCP. @throws ResourceNotFoundError, SuspendedError */
  channel(namespace: OwnedNamespace, connectionId: string): Promise<Pick<Channel, 'request'>> {
    return this.connectionHandles.find(namespace, connectionId);
  }

  /** Returns `{"tools": […]}` as JSON. @throws ResourceNotFoundError, UpstreamFailure */
  async list(namespace: OwnedNamespace, connectionId: string, granted: GrantedTools): Promise<string> {
    const handle = await this.connectionHandles.find(namespace, connectionId);
    return toolsText(
      withinGrant(await withFullMessage(handle.catalog.list(this.tuning.upstreamCallTimeoutMs)), granted),
    );
  }

  /** Returns one tool, or `{"tools": […]}` of a category, as JSON. @throws ResourceNotFoundError, UpstreamFailure */
  async get(namespace: OwnedNamespace, connectionId: string, path: string, granted: GrantedTools): Promise<string> {
    const handle = await this.connectionHandles.find(namespace, connectionId);
    const match = await withFullMessage(handle.catalog.find(path, this.tuning.upstreamCallTimeoutMs));
    const tools = match && withinGrant('tool' in match ? [match.tool] : match.category, granted);
    if (!tools || tools.length === 0) throw unknownTool(handle, path, granted);
    return 'tool' in match ? withInputSchema(match.tool) : toolsText(tools);
  }

  /**
   * Returns the last known tools if the server does not respond within 5 s.
   *
   * @param ask queries the server if its list is older than it allows
   * @returns tools: null while the server has listed none in this process; withheld: names that the owner's choice hides
   * @throws ResourceNotFoundError
   */
  async listKnown(
    namespace: OwnedNamespace,
    connectionId: string,
    granted: GrantedTools,
    ask = true,
  ): Promise<{ tools: ListedTool[] | null; withheld: string[] }> {
    await this.connectionHandles.target(namespace, connectionId);
    let handle: ConnectionHandle | undefined;
    let last: ListItem[] | null = null;
    try {
      handle = await this.connectionHandles.find(namespace, connectionId);
      const catalog = handle.catalogFor(PAGE_CAPABILITIES);
      last = catalog.last ?? handle.catalog.last;
      if (ask) last = await catalog.list(NAMESPACE_WAIT_MS);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
    }
    const plain = handle?.catalog.last && new Set(handle.catalog.names);
    const tools =
      last &&
      withinGrant(last, granted).map(({ name, text }) =>
        Object.assign(JSON.parse(text) as ListedTool, { needsElicitation: plain?.has(name) === false }),
      );
    return { tools, withheld: [...(handle?.owner.withheld ?? [])] };
  }

  /**
   * Returns a `CallToolResult` as JSON, `isError` results included.
   *
   * @throws ResourceNotFoundError, InvalidInputError, ToolError, UpstreamFailure
   */
  call(request: RecordedRequest, response: Pick<ServerResponse, 'statusCode'>, call: RestToolCall): Promise<string> {
    const origin = call.caller && originOf(call.caller);
    return this.logRecorder.record(request, origin, response, (record) => this.send(call, record));
  }

  private async send(call: RestToolCall, record: CallRecord): Promise<string> {
    const { namespace, connectionId, path, body, caller, cancellation } = call;
    const granted = caller?.grant?.tools;
    const handle =
      this.connectionHandles.peek(namespace, connectionId) ??
      (await this.connectionHandles.find(namespace, connectionId));
    record.connectionId = handle.owner.target.id;
    record.received('tools/call', { name: path });
    const args = body.trim() === '' ? '{}' : body;
    if (!isObject(parseBody(args))) {
      throw new InvalidInputError("The body must be the tool's arguments: a JSON object");
    }
    const msLeft = deadlineIn(this.tuning.upstreamCallTimeoutMs);
    // A name without separators needs no list. After a failure, the list shows whether the tool exists.
    const name = /[./]/.test(path) ? await withFullMessage(nameOf(handle, path, msLeft(), granted)) : path;
    if (name !== path) record.received('tools/call', { name });
    if (granted && !granted.includes(name)) throw unknownTool(handle, path, granted);
    let reply: McpReply;
    try {
      reply = await handle.request({
        method: 'tools/call',
        params: `{"name":${JSON.stringify(name)},"arguments":${args}}`,
        timeoutMs: msLeft(),
        cancellation,
        timing: record.timing,
        trace: record.trace,
        invocationId: record.invocationId,
        origin: record.origin ?? undefined,
      });
    } catch (error) {
      if (!(error instanceof UpstreamTimeoutError)) throw fullMessage(error);
      const { target } = handle.owner;
      const url = `${this.env.baseUrl}/connect/${target.namespace}/${target.connectionId}/mcp`;
      const seconds = (target.callTimeoutMs ?? this.env.mcpCallTimeoutMs) / 1000;
      const advice = `A call at the MCP endpoint ${url} may take longer: it fails after ${seconds} s without a message of the server.`;
      throw new UpstreamTimeoutError(`${error.message} ${advice}`, error.outcomeUnknown, error.detail);
    }
    record.recordReply(reply);
    completeOrRefuse(reply);
    // For an unknown tool, some servers return an error, others an `isError` result.
    if ((reply.error || isErrorResult(reply)) && (await isUnknown(handle, name, msLeft())))
      throw unknownTool(handle, path, granted);
    return resultText(reply);
  }

  /**
   * Lists the newest 100 connections as a JSON object keyed by connection id. A failing upstream does not fail the others, and one that
   * requires authorization is not called.
   */
  async listNamespace(namespace: OwnedNamespace): Promise<string> {
    const rows = await this.connectionRepository.find({
      where: { namespaceId: namespace.id },
      select: { connectionId: true, name: true, statusState: true, statusMessage: true },
      order: { seq: 'DESC' },
      take: NAMESPACE_CONNECTIONS_MAX,
    });
    const msLeft = deadlineIn(this.tuning.upstreamCallTimeoutMs);
    const entries: string[] = [];
    const queue = rows.entries();
    const worker = async () => {
      for (const [i, row] of queue) {
        const timeoutMs = Math.min(msLeft(), NAMESPACE_WAIT_MS);
        entries[i] = `${JSON.stringify(row.connectionId)}:${await this.entry(namespace, row, timeoutMs)}`;
      }
    };
    await Promise.all(Array.from({ length: NAMESPACE_PARALLEL }, worker));
    return `{${entries.join(',')}}`;
  }

  private async entry(namespace: OwnedNamespace, row: ListedConnection, timeoutMs: number): Promise<string> {
    const { connectionId, name } = row;
    const head = (state: string) => JSON.stringify({ connectionId, name, status: { state } }).slice(0, -1);
    const failed = (state: string, message: string | null) =>
      `${head(state)},"tools":[],"error":${JSON.stringify(message)}}`;
    if (row.statusState === 'auth_required' || row.statusState === 'input_required') {
      return failed(row.statusState, row.statusMessage);
    }
    try {
      const handle = await this.connectionHandles.find(namespace, connectionId);
      const tools = await handle.catalog.list(timeoutMs);
      return `${head('connected')},"tools":[${tools.map(({ text }) => text).join(',')}]}`;
    } catch (error) {
      const state = error instanceof ResourceNotFoundError ? 'error' : statusAfter(error)?.state;
      if (state === undefined) throw error;
      return failed(state, (error as Error).message);
    }
  }
}

/** @throws ToolError for a JSON-RPC error */
export function resultText({ error, result, text }: McpReply): string {
  if (error) {
    const { code, message, data } = error;
    throw new ToolError(withPages(message, isObject(data) ? data.elicitations : null), { code });
  }
  return result ? slice(text, result) : '{}';
}

/** @throws the error of `work` with a message that includes the `data` of the error */
function withFullMessage<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw fullMessage(error);
  });
}

function fullMessage(error: unknown): unknown {
  return error instanceof ConnectionInputError ? new ConnectionInputRequiredError(error) : error;
}

/** @throws ResourceNotFoundError if the upstream lists no tool at the path, UpstreamFailure */
async function nameOf(
  handle: ConnectionHandle,
  path: string,
  timeoutMs: number,
  granted: GrantedTools,
): Promise<string> {
  const match = await handle.catalog.find(path, timeoutMs);
  if (!match || !('tool' in match)) throw unknownTool(handle, path, granted);
  return match.tool.name;
}

/** Returns the error for tools that the upstream did not list or the caller was not granted; it names the most similar tool. */
function unknownTool(
  { catalog, owner: { target } }: ConnectionHandle,
  path: string,
  granted: GrantedTools,
): ResourceNotFoundError {
  return ResourceNotFoundError.ofItem('tool', target.connectionId, path, granted ? [...granted] : catalog.names);
}

function withinGrant(tools: ListItem[], granted: GrantedTools): ListItem[] {
  return granted ? tools.filter(({ name }) => granted.includes(name)) : tools;
}

/** Returns true if the upstream lists no such tool; false even if it does not return the list. */
async function isUnknown(handle: ConnectionHandle, name: string, timeoutMs: number): Promise<boolean> {
  try {
    const match = await handle.catalog.find(name, timeoutMs);
    return !match || !('tool' in match);
  } catch (error) {
    if (error instanceof UpstreamFailure) return false;
    throw error;
  }
}

function toolsText(tools: ListItem[]): string {
  return `{"tools":[${tools.map(withInputSchema).join(',')}]}`;
}

/** Adds the `inputSchema` that each tool has (Spec 2.4). */
function withInputSchema({ text }: ListItem): string {
  return (memberText(text, 'inputSchema') ?? 'null') === 'null'
    ? withMember(text, 'inputSchema', '{"type":"object"}')
    : text;
}
