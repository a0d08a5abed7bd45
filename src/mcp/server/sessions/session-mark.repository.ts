import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { SessionMark } from './session-mark.entity.js';
import { deletionTime } from '../../../platform/database/deletion-time.js';

const SWEEP_EVERY_MS = 3_600_000;

/** The number of sessions of a principal whose state a process remembers. */
export const MARKS_EACH_MAX = 500;

/** Marks outlive the processes that know the state. */
@Injectable()
export class SessionMarksRepository {
  private sweptAt = 0;

  constructor(@InjectRepository(SessionMark) private readonly sessionMarkRepository: Repository<SessionMark>) {}

  async has(session: string): Promise<boolean> {
    return this.sessionMarkRepository.existsBy({ session });
  }

  /** Deletes the oldest marks above {@link MARKS_EACH_MAX} per principal. */
  async add(session: string, principal: string, expiresAt: number): Promise<void> {
    await this.sessionMarkRepository.upsert({ session, principal, expiresAt: new Date(expiresAt) }, ['session']);
    // After the insertion, so that concurrent insertions count each other. Rows that another transaction deletes are
    // skipped.
    await this.sessionMarkRepository.query(
      `DELETE FROM session_marks WHERE session IN (
         SELECT session FROM session_marks WHERE session = ANY (ARRAY(
           SELECT session FROM session_marks WHERE principal = $1 ORDER BY expires_at DESC, session DESC OFFSET ${MARKS_EACH_MAX}))
         FOR UPDATE SKIP LOCKED)`,
      [principal],
    );
    if (Date.now() - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = Date.now();
    const now = await deletionTime(this.sessionMarkRepository);
    if (now) await this.sessionMarkRepository.delete({ expiresAt: LessThan(now) });
  }
}
