/**
 * Sends a message of a page to a connection: this process is the client, of revision 2026-07-28, without a socket. The message passes the
 * same checks as a POST at the MCP endpoint of the connection.
 *
 * The client declares elicitation by form and by URL: the result can have `resultType: input_required`, and the call then continues with
 * the same params, `inputResponses` and `requestState`. Leaving the page cancels the call.
 *
 * Fails as the access rule does, and with 429 beyond the limits of calls. Failures of the upstream are results, not exceptions.
 */
import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { VERSION } from '../../config/version.js';
import { grantedTools } from '../../mcp/client/tools/tool-choice.js';
import { paramHeaders } from '../../mcp/client/tools/tool-headers.js';
import { headerValue, namedBy } from '../../mcp/protocol/messages.js';
import { envelope, MODERN_VERSION } from '../../mcp/protocol/protocol.js';
import { headerParamsOf } from '../../mcp/server/bridge/header-params.js';
import { McpHttpServer, type McpServerTarget } from '../../mcp/server/mcp-http-server.js';
import { originOf, silentSink } from '../../mcp/server/mcp-request.js';
import { DisconnectCancellation } from '../../mcp/server/response-sink.js';
import type { JsonObject } from '../../platform/text/json.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller, Grant, OwnedNamespace } from '../auth/access.types.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import type { ConnectionCall } from '../logs/invocation.types.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { toolsOfConnections } from './core/connections.access.js';
import { LogRecorder, type CallRecord } from './log/log-recorder.js';
import { PAGE_CAPABILITIES } from './tools/connection-tools.service.js';

const NOTICES_MAX = 100;

export interface Trial {
  result?: JsonObject;
  error?: { code: number; message: string };
  /** The params of the newest 100 notifications, oldest first. */
  progress: JsonObject[];
  /** Null if the connection was not found. */
  call: ConnectionCall | null;
}

/** @throws ResourceNotFoundError, SuspendedError */
export async function targetOf(
  handles: ConnectionHandles,
  { namespace, caller }: Pick<Grant, 'namespace' | 'caller'>,
  connectionId: string,
  record?: CallRecord,
): Promise<McpServerTarget> {
  const owned = namespace as OwnedNamespace;
  const channel = handles.peek(owned, connectionId) ?? (await handles.find(owned, connectionId));
  const { id } = channel.owner.target;
  if (record) record.connectionId = id;
  const { accountId: account, keyId: principal, grant, scopes, loginsEpoch } = caller;
  return { channel: grantedTools(channel, grant?.tools), account, principal, target: id, grant, scopes, loginsEpoch };
}

@Injectable()
export class McpTrial {
  constructor(
    private readonly accessService: AccessService,
    private readonly requestLimits: RequestLimits,
    private readonly connectionHandles: ConnectionHandles,
    private readonly mcpHttpServer: McpHttpServer,
    private readonly logRecorder: LogRecorder,
  ) {}

  /**
   * @param response of the page: the call is cancelled when its client disconnects
   * @throws DomainError as the access rule; TooManyError
   */
  async call(
    person: Caller,
    { namespace: owner, connectionId }: { namespace: string; connectionId: string },
    { method, params }: { method: string; params: JsonObject },
    response: ServerResponse,
    onProgress?: (params: JsonObject) => void,
  ): Promise<Trial> {
    const rule = { scope: 'connections:execute', ...toolsOfConnections } as const;
    const grant = await this.accessService.authorize(person, rule, { owner, connectionId });
    this.requestLimits.beginCall(grant.caller, response);
    const _meta = {
      [envelope.version]: MODERN_VERSION,
      [envelope.capabilities]: PAGE_CAPABILITIES,
      [envelope.clientInfo]: { name: 'slipway-console', version: VERSION },
      progressToken: 1,
    };
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } });
    const name = params[namedBy.get(method) ?? ''];
    const headers = {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN_VERSION,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': headerValue(name) }),
    };
    const progress: JsonObject[] = [];
    const answer = { statusCode: 200, text: '{}' };
    const sink = {
      ...silentSink,
      reply: (statusCode: number, body: string | null) => Object.assign(answer, { statusCode, text: body ?? '{}' }),
      event: (notice: string) => {
        const { method: kind, params: news } = JSON.parse(notice) as { method?: string; params?: JsonObject };
        if (kind !== 'notifications/progress' || !news) return;
        if (progress.push(news) > NOTICES_MAX) progress.shift();
        onProgress?.(news);
      },
    };
    const url = `/connect/${encodeURIComponent(owner)}/${encodeURIComponent(connectionId)}/mcp`;
    const cancellation = new DisconnectCancellation(response);
    let call: ConnectionCall | null = null;
    try {
      const origin = originOf(grant.caller);
      await this.logRecorder.record({ method: 'POST', url, headers: {} }, origin, answer, async (record) => {
        record.onRecorded = (recorded) => (call = recorded);
        const target = await targetOf(this.connectionHandles, grant, connectionId, record);
        const handle = await this.connectionHandles.find(grant.namespace as OwnedNamespace, connectionId);
        const { last } = handle.catalogFor(PAGE_CAPABILITIES);
        const tool = last?.find((listed) => listed.name === name)?.text ?? '';
        const marked = paramHeaders(headerParamsOf(tool) ?? [], params.arguments);
        const request = { text, headers: { ...headers, ...marked }, cancellation, observer: record };
        await this.mcpHttpServer.serveInProcess(request, target, sink);
      });
    } finally {
      cancellation.stopWatching();
    }
    const { result, error } = JSON.parse(answer.text) as Pick<Trial, 'result' | 'error'>;
    return { result, error, progress, call };
  }
}
