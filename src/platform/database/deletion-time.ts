import { Logger } from '@nestjs/common';

/** Maximum offset of a clock, half of the difference that calls between processes tolerate. */
export const CLOCK_OFFSET_MS_MAX = 15_000;

const logger = new Logger('clock');
let isWarned = false;

/**
 * Returns the earlier time of this process's clock and the database's, queried now. Every deletion by age uses it, so that a clock
 * that is ahead deletes nothing (`test/deletions.spec.ts`).
 *
 * @returns null, with one warning, while the clocks differ by more than 15 s: nothing must be deleted by age
 */
export async function deletionTime(database: { query(sql: string): Promise<unknown> }): Promise<Date | null> {
  const sentAt = Date.now();
  const rows = await database.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now');
  const databaseNow = Number((rows as { now: string }[])[0]?.now);
  const offsetMs = (sentAt + Date.now()) / 2 - databaseNow;
  const isOff = Math.abs(offsetMs) > CLOCK_OFFSET_MS_MAX;
  if (isOff && !isWarned) {
    const seconds = Math.round(Math.abs(offsetMs) / 1_000);
    const where = `${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the database`;
    logger.warn(`the clock of this process is ${where}: nothing is deleted by age until both are set right`);
  }
  isWarned = isOff;
  return isOff ? null : new Date(Math.min(sentAt, databaseNow));
}
