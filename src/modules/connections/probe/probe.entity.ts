import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { Account } from '../../auth/account.entity.js';

/** An account probed a server. Has nothing of what was probed. An account has its newest 300. */
@Entity('probes')
@Index('probes_account', ['accountId', 'startedAt'])
export class Probe {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** CASCADE: a count goes with its account. */
  @ForeignKey(() => Account, { name: 'probes_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @CreateDateColumn({ name: 'started_at', type: 'timestamptz', precision: 3 })
  startedAt: Date;

  /** Null while it runs, and of a process that was killed meanwhile. */
  @Column({ type: 'timestamptz', name: 'ended_at', precision: 3, nullable: true })
  endedAt: Date | null;
}
