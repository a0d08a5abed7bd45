import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { Connection } from './connection.entity.js';
import {
  scopesAskedFor,
  scopesRefused,
  statusReasons,
  STEP_UPS_MAX,
  type ConnectionStatus,
} from './connection-status.js';

/** The pause before the first look of our own, doubled with each that fails, to an hour. */
const FIRST_PAUSE_SECONDS = 60;
const PAUSE_SECONDS_MAX = 3_600;

const STEP_UP_MS = 60 * 60_000;

/** Connections in one statement: what was seen of each may be 16 KB of headers. */
const ROWS_MAX = 500;

/** Something that was seen of a connection. */
export interface Seen {
  id: string;
  /** Of the row it was seen with: about a later one it says nothing. */
  revision: number;
  status: ConnectionStatus;
  at: Date;
  /** The last good round trip; null when there was none. */
  okAt: Date | null;
  /** What the server said of itself; null when it was not asked. */
  serverInfo: ServerInfo | null;
}

/** The one place that writes the status of connections, with when each is looked at again. */
@Injectable()
export class StatusWriter {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly env: Env,
  ) {}

  /**
   * Writes what was seen, 500 connections in one statement; each at most once. What was seen earlier than what stands there,
   * or with an earlier revision, is not written.
   *
   * @param by calls leave the time of our next look as it is, unless the state is another one; looks set it
   * @returns the ids of the rows that were written
   */
  async write(seen: Seen[], by: 'call' | 'look'): Promise<string[]> {
    const ids: string[] = [];
    for (let from = 0; from < seen.length; from += ROWS_MAX) {
      ids.push(...(await this.writeSome(seen.slice(from, from + ROWS_MAX), by)));
    }
    return ids;
  }

  /** How long a connection that works is believed without a call; null for ever. */
  get seldomSeconds(): number | null {
    const hours = this.env.connectionRecheckHours;
    return hours === 0 ? null : hours * 3_600;
  }

  private async writeSome(seen: Seen[], by: 'call' | 'look'): Promise<string[]> {
    const rows = await this.limited(seen);
    // Each once: connections that shared a look share it, and it may be 260 KB.
    const infos = [...new Set(rows.flatMap(({ serverInfo }) => serverInfo ?? []))];
    const [written] = await this.connections.query<[{ id: string }[]]>(
      `UPDATE connections c
          SET status_seen_at = LEAST(o.at, now()), status_state = o.state, status_reason = o.reason, status_message = o.message, status_inputs = o.inputs,
              status_challenges = COALESCE(o.challenges, c.status_challenges),
              status_since = CASE WHEN c.status_state = o.state THEN c.status_since ELSE o.at END,
              last_ok_at = GREATEST(c.last_ok_at, o.ok_at),
              server_info = COALESCE($6::jsonb -> o.info, c.server_info),
              check_failures = CASE WHEN o.pace <> 'soon' THEN 0 WHEN $2 THEN c.check_failures + 1 ELSE c.check_failures END,
              next_check_at = CASE
                WHEN o.pace = 'never' OR c.mock IS NOT NULL OR c.target_kind NOT IN ('url', 'server') THEN NULL
                WHEN NOT $2 AND c.status_state = o.state AND c.next_check_at IS NOT NULL THEN c.next_check_at
                WHEN o.pace = 'seldom' THEN now() + $3 * o.jitter * interval '1 second'
                ELSE now() + LEAST($5, $4 * 2 ^ LEAST(c.check_failures, 16)) * o.jitter * interval '1 second' END
         FROM jsonb_to_recordset($1::jsonb) AS o(id uuid, revision int, state text, reason text, message text, inputs jsonb,
              challenges jsonb, at timestamptz, ok_at timestamptz, info int, pace text, jitter float8)
        WHERE c.id = o.id AND c.revision = o.revision AND COALESCE(c.status_seen_at <= o.at, true)
        RETURNING c.id`,
      [
        JSON.stringify(rows.map((row) => toRecord(row, infos))),
        by === 'look',
        this.seldomSeconds,
        FIRST_PAUSE_SECONDS,
        PAUSE_SECONDS_MAX,
        JSON.stringify(infos),
      ],
    );
    return written.map(({ id }) => id);
  }

  /** Whoever was just granted scopes, twice, and is asked for them again, is not sent to authorize a third time. */
  private async limited(seen: Seen[]): Promise<Seen[]> {
    const asking = seen.filter(({ status }) => status.reason === 'insufficient_scope');
    if (asking.length === 0) return seen;
    const rows = await this.connections.find({
      where: { id: In(asking.map(({ id }) => id)) },
      select: { id: true, stepUps: true },
    });
    const since = new Date(Date.now() - STEP_UP_MS).toISOString();
    const granted = new Map(rows.map(({ id, stepUps }) => [id, stepUps.filter(({ at }) => at > since)]));
    return seen.map((one) => {
      const { id, status } = one;
      const same = (granted.get(id) ?? []).filter(({ scopes }) => scopes === scopesAskedFor(status));
      const isOver = status.reason === 'insufficient_scope' && same.length >= STEP_UPS_MAX;
      return isOver ? { ...one, status: scopesRefused(status) } : one;
    });
  }
}

function toRecord({ id, revision, status, at, okAt, serverInfo }: Seen, infos: readonly ServerInfo[]): object {
  const { state, reason, message, inputs, challenges } = status;
  const { pace } = statusReasons[reason];
  // An eighth more or less, so that what broke together is not asked together.
  const jitter = 0.875 + Math.random() / 4;
  return {
    id,
    revision,
    state,
    reason,
    message,
    inputs,
    challenges,
    at,
    ok_at: okAt,
    info: serverInfo && infos.indexOf(serverInfo),
    pace,
    jitter,
  };
}
