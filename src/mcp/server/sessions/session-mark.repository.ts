import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { SessionMark } from './session-mark.entity.js';

/** Interval of deleting expired rows. */
const SWEEP_EVERY_MS = 3_600_000;

/** Marks of sessions with state in the database, which outlive the processes that know the state. */
@Injectable()
export class SessionMarkRepository {
  private sweptAt = 0;

  constructor(@InjectRepository(SessionMark) private readonly marks: Repository<SessionMark>) {}

  async has(session: string): Promise<boolean> {
    return this.marks.existsBy({ session });
  }

  async add(session: string, expiresAt: number): Promise<void> {
    await this.marks.upsert({ session, expiresAt: new Date(expiresAt) }, ['session']);
    if (Date.now() - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = Date.now();
    await this.marks.delete({ expiresAt: LessThan(new Date()) });
  }
}
