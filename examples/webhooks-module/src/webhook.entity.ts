import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** An address that receives the events of an account. */
@Entity('webhooks')
export class Webhook {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @Column('text')
  url: string;

  @Column('text', { array: true })
  events: string[];

  /** The key of the signatures. */
  @Column('text', { name: 'sealed_secret' })
  sealedSecret: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
