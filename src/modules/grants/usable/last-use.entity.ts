import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { CallOrigin } from '../../../mcp/protocol/channel.js';
import { Account } from '../../auth/account.entity.js';
import { Connection } from '../../connections/core/connection.entity.js';
import { Server } from '../../servers/server.entity.js';

@Entity('last_uses')
@Index('last_uses_connection', ['connectionId'])
@Index('last_uses_server', ['serverId'])
@Check('last_uses_target', 'num_nonnulls(connection_id, server_id) = 1')
export class LastUse {
  @ForeignKey(() => Account, { name: 'last_uses_account_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'account_id' })
  accountId: string;

  @PrimaryColumn('uuid', { name: 'target_id' })
  targetId: string;

  @ForeignKey(() => Connection, { name: 'last_uses_connection_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'connection_id', nullable: true })
  connectionId: string | null;

  @ForeignKey(() => Server, { name: 'last_uses_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id', nullable: true })
  serverId: string | null;

  @Column({ type: 'timestamptz', precision: 3 })
  at: Date;

  @Column('text')
  kind: CallOrigin['kind'];

  /** Kept as a record, without a foreign key. */
  @Column('uuid', { name: 'credential_id' })
  credentialId: string;

  /** The name that the client chose for itself; null without one. */
  @Column('text', { nullable: true })
  client: string | null;
}
