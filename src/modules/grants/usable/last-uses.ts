/**
 * A finished call stores one value in memory, which is written a second later, in one statement for all (`WriteBehind`, at most 50,000
 * values); a process that is killed loses its last second.
 *
 * Calls that were rejected before they reached the target are not recorded. A call through a connection is a use of the connection only,
 * not of the server behind it; one at the endpoint of a namespace uses the connections that it reached.
 */
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { CallEvents } from '../../logs/call.events.js';
import { LastUsesRepository, type Use } from './last-uses.repository.js';

@Injectable()
export class LastUses implements OnModuleInit, OnApplicationShutdown {
  private readonly used = new WriteBehind<string, Use>('last uses', (batch) =>
    this.lastUsesRepository.save([...batch.values()]),
  );

  constructor(
    private readonly callEvents: CallEvents,
    private readonly lastUsesRepository: LastUsesRepository,
  ) {}

  onModuleInit(): void {
    this.callEvents.on('ended', (target, by) =>
      this.used.set(`${by.account} ${target.id}`, { target, by, at: new Date() }),
    );
  }

  /** Writes pending uses, so that a later read includes those of this process. */
  settle(): Promise<void> {
    return this.used.flush();
  }

  onApplicationShutdown(): Promise<void> {
    return this.used.onApplicationShutdown();
  }
}
