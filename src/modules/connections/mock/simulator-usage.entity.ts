import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How often simulated connections of a namespace asked the language model on one day. Only the present day is kept. */
@Entity('simulator_days')
export class SimulatorUsage {
  /** By the database's clock. */
  @PrimaryColumn('date')
  day: string;

  /** No foreign key: a namespace that is deleted has still cost something today. */
  @PrimaryColumn('uuid', { name: 'namespace_id' })
  namespaceId: string;

  @Column('integer')
  calls: number;
}
