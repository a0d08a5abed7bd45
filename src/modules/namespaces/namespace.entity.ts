import { Check, Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Account } from '../auth/account.entity.js';

/** A globally unique name an account owns; holds servers, skills and connections. */
@Entity('namespaces')
@Check('namespaces_name', `"name" ~ '^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$'`)
export class Namespace {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Index('namespaces_name_unique', { unique: true })
  @Column('text')
  name: string;

  @Index('namespaces_account')
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @ManyToOne(() => Account, { nullable: false, onDelete: 'RESTRICT' })
  @JoinColumn({ name: 'account_id', foreignKeyConstraintName: 'namespaces_account_fk' })
  account: Relation<Account>;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
