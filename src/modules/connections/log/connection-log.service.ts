import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { isConnectionId } from '../core/connection-target.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import type { LoggedCall } from './call-record.js';
import { ConnectionLine } from './connection-line.entity.js';
import { LineRecorder } from './line-recorder.js';
import { LogRecorder, KEPT_DAYS, KEPT_MAX } from './log-recorder.js';
import type { ConnectionLogDto, ConnectionLogQueryDto } from './connection-log.dto.js';
import { toInvocationDto } from './connection-log.mapper.js';

/** The newest rows are read along an index, and only they are searched, so the worst search looks at 1,000 rows. */
const MATCHING = `
  WITH newest AS (
    SELECT * FROM connection_invocations
     WHERE connection_id = $1 AND at >= now() - interval '${KEPT_DAYS} days'
     ORDER BY at DESC, id DESC LIMIT ${KEPT_MAX})
  SELECT id, at, method, url, rpc_method AS "rpcMethod", tool_name AS "toolName", status, outcome,
         failure_name AS "failureName", failure_message AS "failureMessage", guard_ms AS "guardMs",
         queue_ms AS "queueMs", connect_ms AS "connectMs", first_byte_ms AS "firstByteMs", total_ms AS "totalMs",
         count(*) OVER ()::int AS total
    FROM newest
   WHERE ($2::timestamptz IS NULL OR at >= $2) AND ($3::timestamptz IS NULL OR at < $3)
     AND ($4::text IS NULL OR outcome = $4) AND ($5::text IS NULL OR tool_name = $5)
     AND ($6::text IS NULL
          OR position(lower($6) IN lower(concat_ws(chr(10), tool_name, failure_name, failure_message))) > 0
          OR EXISTS (SELECT FROM connection_lines l WHERE l.invocation_id = newest.id AND l.connection_id = $1
                       AND position(lower($6) IN lower(concat_ws(chr(10), l.name, l.message))) > 0))
   ORDER BY at DESC, id DESC LIMIT $7`;

/** Lines one answer holds at most. */
const LINES_MAX = 2_000;

/** Reads the logs of connections. */
@Injectable()
export class ConnectionLogService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly recorder: LogRecorder,
    private readonly lines: LineRecorder,
    @InjectRepository(ConnectionLine) private readonly written: Repository<ConnectionLine>,
  ) {}

  /** The newest matching calls, of the newest 1,000 of 7 days. @throws ResourceNotFoundError */
  async list(
    namespace: OwnedNamespace,
    connectionId: string,
    { limit = 20, from, to, search, outcome, tool }: ConnectionLogQueryDto,
  ): Promise<ConnectionLogDto> {
    const row = isConnectionId(connectionId)
      ? await this.connections.findOne({ where: { namespaceId: namespace.id, connectionId }, select: { id: true } })
      : null;
    if (!row) throw new ResourceNotFoundError();
    await Promise.all([this.recorder.settle(), this.lines.settle()]);
    const given = [from, to, outcome, tool, search].map((value) => value ?? null);
    const rows = await this.connections.query<(LoggedCall & { total: number })[]>(MATCHING, [row.id, ...given, limit]);
    const lines = await this.written.find({
      where: { invocationId: In(rows.map(({ id: one }) => one)), connectionId: row.id },
      order: { seq: 'ASC' },
      take: LINES_MAX,
    });
    const linesOf = (id: string) => lines.filter(({ invocationId }) => invocationId === id);
    return { invocations: rows.map((call) => toInvocationDto(call, linesOf(call.id))), total: rows[0]?.total ?? 0 };
  }
}
