import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { Connection } from './connection.entity.js';
import {
  requestedScopes,
  scopesRefused,
  statusReasons,
  STEP_UPS_MAX,
  type ConnectionStatus,
} from './connection-status.js';

/** Pause after the first failure; it doubles with each failure, up to an hour. */
const FIRST_PAUSE_SECONDS = 60;
const PAUSE_SECONDS_MAX = 3_600;

const STEP_UP_MS = 60 * 60_000;

/** Maximum number of rows of a statement: the challenges of each connection can have 16 KB. */
const ROWS_MAX = 500;

export const STATUS_COLUMNS = 'status_state, status_reason, status_message, status_inputs, status_since';

export interface Observation {
  id: string;
  /** Revision of the observed row; later revisions ignore the observation. */
  revision: number;
  status: ConnectionStatus;
  /** True if the upstream returned a retry time: a connected connection stays connected. */
  isWait?: boolean;
  at: Date;
  okAt: Date | null;
  /** Null if `initialize` was not sent. */
  serverInfo: ServerInfo | null;
}

/** Writes the status of connections; no other code does. */
@Injectable()
export class StatusesRepository {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly env: Env,
  ) {}

  /**
   * Writes observations, except those that are older than the stored one, or of an earlier revision.
   *
   * @param by a check sets the time of the next recheck; a call does so only if it changes the state
   * @returns the ids of the written rows
   */
  async write(observations: Observation[], by: 'call' | 'check'): Promise<string[]> {
    const ids: string[] = [];
    for (let from = 0; from < observations.length; from += ROWS_MAX) {
      const rows = await this.withStepUpLimit(observations.slice(from, from + ROWS_MAX));
      // Deduplicated: connections that share a check share its server info, which can have 260 KB.
      const infos = [...new Set(rows.flatMap(({ serverInfo }) => serverInfo ?? []))];
      const records = rows.map(({ id, revision, status, isWait, at, okAt, serverInfo }) => {
        const { pace } = statusReasons[status.reason];
        // Varies the interval by an eighth, so that connections that broke together are not rechecked together.
        const jitter = 0.875 + Math.random() / 4;
        return {
          ...status,
          id,
          revision,
          isWait,
          at,
          ok_at: okAt,
          info: serverInfo && infos.indexOf(serverInfo),
          pace,
          jitter,
        };
      });
      const [written] = await this.connectionRepository.query<[{ id: string }[]]>(
        `UPDATE connections c
          SET (${STATUS_COLUMNS}) = (o.state, o.reason, o.message, o.inputs, CASE WHEN c.status_state = o.state THEN c.status_since ELSE o.at END),
              status_seen_at = LEAST(o.at, now()), status_challenges = COALESCE(o.challenges, c.status_challenges),
              last_ok_at = GREATEST(c.last_ok_at, o.ok_at),
              server_info = COALESCE($6::jsonb -> o.info, c.server_info),
              check_failures = CASE WHEN o.pace <> 'soon' THEN 0 WHEN $2 THEN c.check_failures + 1 ELSE c.check_failures END,
              next_check_at = CASE
                WHEN o.pace = 'never' OR c.mock IS NOT NULL OR c.target_kind NOT IN ('url', 'server') THEN NULL
                WHEN NOT $2 AND c.status_state = o.state AND c.next_check_at IS NOT NULL THEN c.next_check_at
                WHEN o.pace = 'seldom' THEN now() + $3 * o.jitter * interval '1 second'
                ELSE now() + LEAST($5, $4 * 2 ^ LEAST(c.check_failures, 16)) * o.jitter * interval '1 second' END
         FROM jsonb_to_recordset($1::jsonb) AS o(id uuid, revision int, state text, reason text, message text, inputs jsonb,
              "isWait" boolean, challenges jsonb, at timestamptz, ok_at timestamptz, info int, pace text, jitter float8)
        WHERE c.id = o.id AND c.revision = o.revision AND COALESCE(c.status_seen_at <= o.at, true)
          AND (o."isWait" IS NOT TRUE OR c.status_state <> 'connected')
        RETURNING c.id`,
        [
          JSON.stringify(records),
          by === 'check',
          this.recheckSeconds,
          FIRST_PAUSE_SECONDS,
          PAUSE_SECONDS_MAX,
          JSON.stringify(infos),
        ],
      );
      ids.push(...written.map(({ id }) => id));
    }
    return ids;
  }

  get recheckSeconds(): number | null {
    const hours = this.env.connectionRecheckHours;
    return hours === 0 ? null : hours * 3_600;
  }

  private async withStepUpLimit(observations: Observation[]): Promise<Observation[]> {
    const refused = observations.filter(({ status }) => status.reason === 'insufficient_scope');
    if (refused.length === 0) return observations;
    const rows = await this.connectionRepository.find({
      where: { id: In(refused.map(({ id }) => id)) },
      select: { id: true, stepUps: true },
    });
    const since = new Date(Date.now() - STEP_UP_MS).toISOString();
    const granted = new Map(rows.map(({ id, stepUps }) => [id, stepUps.filter(({ at }) => at > since)]));
    return observations.map((observation) => {
      const { id, status } = observation;
      const same = (granted.get(id) ?? []).filter(({ scopes }) => scopes === requestedScopes(status));
      const isOver = status.reason === 'insufficient_scope' && same.length >= STEP_UPS_MAX;
      return isOver ? { ...observation, status: scopesRefused(status) } : observation;
    });
  }
}
