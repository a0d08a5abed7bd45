import { ForeignKey, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Server } from '../servers/server.entity.js';

/** Shape of the results of one tool in one week, without values. */
@Entity('tool_output_shapes')
@Index('tool_output_shapes_week', ['week'])
export class ToolOutputShape {
  /** Id of the server. CASCADE: the rows are deleted with their server. */
  @ForeignKey(() => Server, { name: 'tool_output_shapes_server_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'tool_output_shapes_pk' })
  serverId: string;

  @PrimaryColumn('text', { name: 'tool_name', primaryKeyConstraintName: 'tool_output_shapes_pk' })
  toolName: string;

  /** Number of weeks since 1970-01-01, which was a Thursday. */
  @PrimaryColumn('integer', { primaryKeyConstraintName: 'tool_output_shapes_pk' })
  week: number;

  @Column('integer')
  samples: number;

  /** JSON of `toShapeText`; text, because Postgres never reads into it. */
  @Column('text')
  shape: string;
}
