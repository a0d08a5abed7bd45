import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A task that was started at a server of 2025-11-25, for the list of its caller's tasks. */
@Entity('mcp_tasks')
@Index('mcp_tasks_owner', ['owner', 'createdAt'])
@Index('mcp_tasks_expiry', ['expiresAt'])
export class McpTask {
  @PrimaryColumn('text')
  task: string;

  /** Account and endpoint that own the task. */
  @Column('text')
  owner: string;

  @Column('timestamptz', { name: 'created_at' })
  createdAt: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}
