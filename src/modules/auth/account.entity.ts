import { Check, Column, CreateDateColumn, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

export const accountKinds = ['user', 'organization'] as const;
export type AccountKind = (typeof accountKinds)[number];

/** A user or an organization: owns namespaces and API keys. */
@Entity('accounts')
@Check('accounts_kind', `"kind" IN ('user', 'organization')`)
export class Account {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Index('accounts_name', { unique: true })
  @Column('text')
  name: string;

  @Column('text')
  kind: AccountKind;

  /** True for the operator, who manages accounts and keys but does not own what they own. */
  @Column('boolean', { name: 'is_operator', default: false })
  isOperator: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
