import { DiscoveryService } from '@nestjs/core';

export const ScheduleMarker = DiscoveryService.createDecorator<string>();

/**
 * Calls a method of a provider at the times of a cron expression, in UTC. One process with the role `worker` performs
 * each run: the module needs that role. The method receives the time at which the run was due.
 *
 * If the method throws, the failure is logged and the next run is the next attempt. A run that was due while no worker
 * was running starts late, once. A long run can overlap with the next one, and a run is repeated if its process is
 * killed: make it idempotent. A process that stops waits for its runs.
 *
 * @param cron five fields, or six with seconds in front
 * @example class Digest {
 *   @Schedule('0 3 * * *')
 *   async send(dueAt: Date) {
 *     await this.mail.send(dueAt.toISOString().slice(0, 10));
 *   } }
 * @stability preview
 */
export function Schedule(cron: string): MethodDecorator {
  return ScheduleMarker(cron);
}
