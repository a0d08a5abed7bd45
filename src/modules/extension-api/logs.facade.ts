import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { IngestedInvocation } from '../logs/invocation.types.js';
import type { RuntimeLogDto, RuntimeLogQueryDto } from '../logs/search/runtime-log.dto.js';
import { RuntimeLogsService } from '../logs/search/runtime-logs.service.js';
import type { ServerRef } from '../servers/server.types.js';
import type { FacadeCaller } from './facade.types.js';
import { FacadeTargets, managedServer } from './facade-targets.js';

/**
 * Runtime logs of servers.
 *
 * @stability preview
 * @example
 * // Stores the requests that a gateway of your own reports.
 * export class GatewayService {
 *   constructor(private readonly logs: Logs) {}
 *
 *   async report(server: ServerRef, { requestId, time, tool, message }: Report): Promise<void> {
 *     const id = invocationId(server.id, requestId, time);
 *     const lines = [{ at: time.getTime(), level: 'info', message }];
 *     await this.logs.ingest(server, [
 *       { id, at: time.getTime(), method: 'POST', url: '/mcp', toolName: tool, status: 200, outcome: 'ok', lines, exceptions: [] },
 *     ]);
 *   }
 * }
 */
export abstract class Logs {
  /**
   * Stores invocations, all or none: limited in size, credentials redacted, URLs without queries. A worker lists them
   * within seconds. The server must come from an access rule or another facade, which has checked the caller.
   *
   * @param invocations of the last 24 hours (`timeProblem`), with an `invocationId`
   * @param tx stores them with a transaction of the module
   * @throws QuotaExceededError; UnavailableError if too many records wait to be written
   */
  abstract ingest(server: ServerRef, invocations: IngestedInvocation[], tx?: EntityManager): Promise<void>;

  /**
   * Returns the newest matching invocations, as `GET /servers/{qualifiedName}/logs`.
   *
   * @throws ServerNotFoundError for a server that the caller cannot manage
   */
  abstract search(caller: FacadeCaller, serverName: string, query?: RuntimeLogQueryDto): Promise<RuntimeLogDto>;
}

@Injectable()
export class ServiceLogs implements Logs {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly runtimeLogsService: RuntimeLogsService,
  ) {}

  ingest(server: ServerRef, invocations: IngestedInvocation[], tx?: EntityManager): Promise<void> {
    return this.runtimeLogsService.ingest(server, invocations, tx);
  }

  async search(caller: FacadeCaller, serverName: string, query: RuntimeLogQueryDto = {}): Promise<RuntimeLogDto> {
    const { server } = await this.facadeTargets.server(caller, serverName, managedServer);
    return this.runtimeLogsService.list(server, query);
  }
}
