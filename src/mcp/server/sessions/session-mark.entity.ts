import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A session in which a client set a log level or subscribed; only the processes of that time know the state. */
@Entity('session_marks')
@Index('session_marks_expiry', ['expiresAt'])
@Index('session_marks_principal', ['principal', 'expiresAt', 'session'])
export class SessionMark {
  @PrimaryColumn('text')
  session: string;

  /** The id of a key, or of an OAuth token's client authorization. */
  @Column('text', { default: '' })
  principal: string;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}
