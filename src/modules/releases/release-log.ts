import type { EntityManager } from 'typeorm';
import { toStorableText } from '../../platform/database/storable.js';
import { ReleaseLog, type LogLevel } from './release-log.entity.js';
import type { Stage } from './release-state.js';

/** One line of a release's log. */
export interface LogLine {
  stage: Stage;
  level: LogLevel;
  message: string;
  /** Why, where the message says what. */
  error?: string;
}

/** Enough for a sentence with a URL or two; an upstream's words may be endless. */
const MESSAGE_CHARS_MAX = 2_000;

/** Writes lines into a release's log. */
export async function writeLines(releaseId: string, lines: LogLine[], tx: EntityManager): Promise<void> {
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
