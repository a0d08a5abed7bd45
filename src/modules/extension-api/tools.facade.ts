import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Tuning } from '../../config/tuning.js';
import { Cancellation } from '../../mcp/protocol/cancellation.js';
import { completeOrRefuse } from '../../mcp/protocol/messages.js';
import { originOf } from '../../mcp/server/mcp-request.js';
import type { JsonObject } from '../../platform/text/json.js';
import { type Caller, callerFor } from '../auth/access.types.js';
import { listedTools, toolsOfConnections } from '../connections/core/connections.access.js';
import { McpTrial, type Trial } from '../connections/mcp-trial.service.js';
import type { CallToolResultDto } from '../connections/tools/connection-tools.dto.js';
import {
  ConnectionToolsService,
  type RestToolCall,
  resultText,
} from '../connections/tools/connection-tools.service.js';
import { RunService } from '../run/run.service.js';
import { parseQualifiedName } from '../servers/server.types.js';
import type { FacadeCaller } from './facade.types.js';
import { FacadeTargets } from './facade-targets.js';

/** The target of a call: a connection by `namespace/connection`, or a server by its qualified name. @stability preview */
export type ToolTarget = { connection: string } | { server: string };

type SentCall = Pick<RestToolCall, 'path' | 'body' | 'cancellation'>;

/**
 * Tools of connections and servers.
 *
 * @stability preview
 * @example
 * // Calls a tool of a connection for everybody who asks for a summary.
 * export class SummaryService {
 *   constructor(private readonly tools: Tools) {}
 *
 *   async summarize(caller: Caller, text: string): Promise<string> {
 *     const { content } = await this.tools.call(caller, { connection: 'acme/model' }, 'summarize', { text });
 *     return content.map((part) => part.text ?? '').join('');
 *   }
 * }
 */
export abstract class Tools {
  /**
   * Calls a tool and returns its result, including results with `isError`. The call has the timeout and the log record
   * of a call over REST. With `asSystem` the record has no caller, and a server is called with the rights of its owner.
   * A server that requires configuration values is called through a connection.
   *
   * @param tool its name; of a connection also its path, such as `repo/search`
   * @param options `signal`: cancels the call at the MCP server
   * @throws ResourceNotFoundError, ServerNotFoundError for a target that is hidden from the caller; ToolError;
   *   UpstreamFailure
   */
  abstract call(
    caller: FacadeCaller,
    target: ToolTarget,
    tool: string,
    args: Record<string, unknown>,
    options?: { signal?: AbortSignal },
  ): Promise<CallToolResultDto>;

  /**
   * Returns a tool as the MCP server of a connection lists it to {@link try}; null for one that it does not list, or
   * that is not granted to the caller. If the server does not respond within 5 s, the last list is used.
   *
   * @throws ResourceNotFoundError
   */
  abstract find(caller: FacadeCaller, connection: string, tool: string): Promise<JsonObject | null>;

  /**
   * Returns the tools that a connection lists to the caller, and the names of those that its owner withholds. If the
   * server does not respond within 5 s, the last list is used; `tools` is null if there is none.
   *
   * @param options `ask`: false returns the last list
   * @throws ResourceNotFoundError
   */
  abstract list(
    caller: FacadeCaller,
    connection: string,
    options?: { ask?: boolean },
  ): ReturnType<ConnectionToolsService['listKnown']>;

  /**
   * Calls a tool of a connection for a person who can provide the input that it requests: an MCP client that declares
   * elicitation by form and by URL. Errors of the MCP server are part of the returned trial.
   *
   * @param params `name`, `arguments`, and of a continued call `inputResponses` and `requestState`
   * @param response of the page: the call is canceled when its browser disconnects
   * @param onProgress is called with the params of each progress notification
   * @throws ResourceNotFoundError, TooManyError
   */
  abstract try(
    caller: Caller,
    connection: string,
    params: JsonObject,
    response: ServerResponse,
    onProgress?: (params: JsonObject) => void,
  ): Promise<Trial>;
}

@Injectable()
export class ServiceTools implements Tools {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly mcpTrial: McpTrial,
    private readonly runService: RunService,
    private readonly tuning: Tuning,
  ) {}

  async call(...[caller, target, tool, args, { signal } = {}]: Parameters<Tools['call']>): Promise<CallToolResultDto> {
    const call = { path: tool, body: JSON.stringify(args), cancellation: new Cancellation() };
    const cancel = () => call.cancellation.cancel();
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel);
    const send =
      'server' in target
        ? this.callServer(caller, target.server, call)
        : this.callConnection(caller, target.connection, call);
    return JSON.parse(await send.finally(() => signal?.removeEventListener('abort', cancel))) as CallToolResultDto;
  }

  async find(requester: FacadeCaller, name: string, tool: string): Promise<JsonObject | null> {
    return (await this.list(requester, name)).tools?.find((listed) => listed.name === tool) ?? null;
  }

  readonly list: Tools['list'] = async (requester, name, { ask } = {}) => {
    const rule = { scope: 'connections:read', ...listedTools } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.connectionToolsService.listKnown(namespace, connectionId, caller?.grant?.tools, ask);
  };

  try(...[caller, connection, params, response, onProgress]: Parameters<Tools['try']>): Promise<Trial> {
    const { namespace, name: connectionId } = parseQualifiedName(connection);
    const message = { method: 'tools/call', params };
    return this.mcpTrial.call(caller, { namespace, connectionId }, message, response, onProgress);
  }

  private async callConnection(requester: FacadeCaller, name: string, call: SentCall): Promise<string> {
    const rule = { scope: 'connections:execute', ...toolsOfConnections } as const;
    const place = await this.facadeTargets.connection(requester, name, rule);
    const request = { method: 'POST', url: `/connect/${name}/.tools/${call.path}`, headers: {} };
    return this.connectionToolsService.call(request, { statusCode: 200 }, { ...place, ...call });
  }

  private async callServer(requester: FacadeCaller, name: string, call: SentCall): Promise<string> {
    const { server, caller } = await this.facadeTargets.server(requester, name, { scope: 'servers:execute' });
    const { path, body, cancellation } = call;
    const params = `{"name":${JSON.stringify(path)},"arguments":${body}}`;
    const origin = caller ? originOf(caller) : undefined;
    const sent = { method: 'tools/call', params, timeoutMs: this.tuning.upstreamCallTimeoutMs, cancellation, origin };
    const reply = await this.runService.request(server.slug, caller ?? callerFor(server.ownerId), sent);
    return resultText(completeOrRefuse(reply));
  }
}
