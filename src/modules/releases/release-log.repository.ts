import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, MoreThan, type EntityManager } from 'typeorm';
import { toStorableText } from '../../platform/database/storable.js';
import { LogNamesRepository, type LogNames } from '../../platform/telemetry/log-names.repository.js';
import { ReleaseLog, type LogLine } from './release.entity.js';

/** Maximum length of a message, enough for a URL or two; strings of upstreams are not limited otherwise. */
const MESSAGE_CHARS_MAX = 2_000;

const RESCAN_LINES_MAX = 500;

@Injectable()
export class ReleaseLogsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Appends lines, with messages cut at 2,000 characters. */
  async append(releaseId: string, lines: LogLine[], tx: EntityManager = this.database.manager): Promise<void> {
    if (lines.length === 0) return;
    const fit = (text: string) => toStorableText(text.slice(0, MESSAGE_CHARS_MAX));
    const rows = lines.map(({ stage, level, message, error }) => ({
      releaseId,
      stage,
      level,
      message: fit(message),
      error: error === undefined ? null : fit(error),
    }));
    await tx.createQueryBuilder().insert().into(ReleaseLog).values(rows).updateEntity(false).execute();
  }

  /** Lists the lines in order. @param after the `seq` before the first line */
  linesOf(releaseId: string, after = '0'): Promise<ReleaseLog[]> {
    return this.database.manager.find(ReleaseLog, {
      where: { releaseId, seq: MoreThan(after) },
      order: { seq: 'ASC' },
    });
  }

  /** Returns the last errors by release id, without releases that have none. */
  async lastErrors(releaseIds: string[]): Promise<Map<string, string>> {
    if (releaseIds.length === 0) return new Map();
    const rows = await this.database.query<{ releaseId: string; message: string }[]>(
      `SELECT DISTINCT ON (release_id) release_id AS "releaseId", message FROM release_logs
        WHERE release_id = ANY($1) AND level = 'error' ORDER BY release_id, seq DESC`,
      [releaseIds],
    );
    return new Map(rows.map(({ releaseId, message }) => [releaseId, message]));
  }

  namesOf(releaseId: string): Promise<LogNames> {
    return LogNamesRepository.find(this.database, 'release', releaseId);
  }

  /** Counts only lines that were written after the pipeline finished. */
  async removeOldRescanLines(releaseId: string, tx: EntityManager): Promise<void> {
    await tx.query(
      `DELETE FROM release_logs WHERE release_id = $1 AND stage = 'scan'
          AND seq > (SELECT max(seq) FROM release_logs WHERE release_id = $1 AND stage = 'publish' AND level = 'success')
          AND seq <= (SELECT seq FROM release_logs WHERE release_id = $1
                       ORDER BY seq DESC OFFSET ${RESCAN_LINES_MAX} LIMIT 1)`,
      [releaseId],
    );
  }
}
