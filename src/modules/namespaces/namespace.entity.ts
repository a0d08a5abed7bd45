import { ForeignKey, Check, Column, CreateDateColumn, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { Account } from '../auth/account.entity.js';
import type { Suspension } from '../auth/suspension.types.js';

@Entity('namespaces')
@Check('namespaces_name', `"name" ~ '^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$'`)
export class Namespace {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Index('namespaces_name_unique', { unique: true })
  @Column('text')
  name: string;

  @Index('namespaces_account')
  @ForeignKey(() => Account, { name: 'namespaces_account_fk', onDelete: 'RESTRICT' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Calls are rejected while it is set. */
  @Column('jsonb', { nullable: true })
  suspended: Suspension | null;
}
