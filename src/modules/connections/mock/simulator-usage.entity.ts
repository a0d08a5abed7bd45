import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Questions to the language model by a namespace on one day. Only the current day is kept. */
@Entity('simulator_days')
export class SimulatorUsage {
  /** By the database's clock. */
  @PrimaryColumn('date')
  day: string;

  /** No foreign key: the questions of a deleted namespace still count today. */
  @PrimaryColumn('uuid', { name: 'namespace_id' })
  namespaceId: string;

  @Column('integer')
  calls: number;
}
