import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Schedule, type ScheduledWork } from '../../../platform/schedule/schedule.js';
import { InvocationsRepository, type DeletedOwner } from './invocations.repository.js';
import { PartitionsRepository } from './partitions.repository.js';

/** Time until clearing the log of a deleted server or connection starts. */
const SWEEP_EVERY_MS = 5_000;

/**
 * Clears the side of deleted servers and connections in the rows of the log, and deletes rows without another side.
 * Triggers list the deleted ones in `deleted_invocation_owners`, in the transaction of the deletion. Each is cleared
 * twice: immediately, and after all inserts that ran during the deletion have finished.
 */
@Injectable()
export class DeletedOwnerCleaner implements OnApplicationBootstrap, OnModuleDestroy {
  private work: ScheduledWork | null = null;
  private isStopping = false;

  constructor(
    private readonly schedule: Schedule,
    private readonly invocationsRepository: InvocationsRepository,
    private readonly partitionsRepository: PartitionsRepository,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.schedule.every(
      'clearing the logs of deleted servers and connections',
      SWEEP_EVERY_MS,
      async () => {
        for (
          let owner = await this.invocationsRepository.claimDeleted();
          owner;
          owner = await this.invocationsRepository.claimDeleted()
        ) {
          await this.clear(owner);
          if (this.isStopping) return;
        }
      },
    );
  }

  onModuleDestroy(): void {
    this.isStopping = true;
  }

  /** Clears all due owners, after a running sweep. */
  async sweep(): Promise<void> {
    await this.work?.run();
  }

  private async clear(owner: DeletedOwner): Promise<void> {
    for (const { day } of await this.partitionsRepository.list()) {
      let changed: number;
      do {
        if (this.isStopping) return;
        changed = await this.invocationsRepository.clear(owner, day);
      } while (changed > 0);
    }
    if (owner.isLast) await this.invocationsRepository.forgetDeleted(owner);
  }
}
