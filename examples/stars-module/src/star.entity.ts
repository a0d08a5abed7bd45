import { CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** A server that an account has starred. The foreign keys stand in the migration. */
@Entity('stars')
export class Star {
  @PrimaryColumn('uuid', { name: 'server_id' })
  serverId: string;

  @PrimaryColumn('uuid', { name: 'account_id' })
  accountId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
