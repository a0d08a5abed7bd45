import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { Account } from '../../auth/account.entity.js';

/** Stores no target and no result. The newest 300 probes of each account are kept. */
@Entity('probes')
@Index('probes_account', ['accountId', 'startedAt'])
export class Probe {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @ForeignKey(() => Account, { name: 'probes_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @CreateDateColumn({ name: 'started_at', type: 'timestamptz', precision: 3 })
  startedAt: Date;

  /** End of the probe; null while it runs, and if its process was killed. */
  @Column({ type: 'timestamptz', name: 'ended_at', precision: 3, nullable: true })
  endedAt: Date | null;
}
