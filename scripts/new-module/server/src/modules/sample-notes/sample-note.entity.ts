import { CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Account } from '../auth/account.entity.js';
import { Server } from '../servers/server.entity.js';

/** The sample note of an account on a server. Both foreign keys are CASCADE: it goes with either of them. */
@Entity('sample_notes')
export class SampleNote {
  @ForeignKey(() => Server, { name: 'sample_notes_server_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'sample_notes_pk' })
  serverId: string;

  @Index('sample_notes_account')
  @ForeignKey(() => Account, { name: 'sample_notes_account_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'account_id', primaryKeyConstraintName: 'sample_notes_pk' })
  accountId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
