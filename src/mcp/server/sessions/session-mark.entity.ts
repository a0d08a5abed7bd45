import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A session in which a client set a log level or subscribed, which only the processes of that time know. */
@Entity('session_marks')
@Index('session_marks_expiry', ['expiresAt'])
export class SessionMark {
  /** `ClientSession.key`. */
  @PrimaryColumn('text')
  session: string;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}
