import { DiscoveryService } from '@nestjs/core';
import type { EventName } from './event.types.js';

export const EventMarker = DiscoveryService.createDecorator<EventName[]>();

/**
 * Calls a method of a provider for each event of these names. The method receives the event in a process with the role
 * `worker`: the module needs that role. `call.finished` is delivered in the process that writes the row.
 *
 * A {@link ChangeEvent} is delivered at least once, and events of one target in order: the next one is delivered after
 * the method has resolved. A method that throws, or takes longer than 30 s, is called again later, up to 15 times
 * within about five hours; then the delivery is abandoned, and `slipway doctor` names the method. `event.id` is the
 * same in each attempt. A method receives events from its first start on; its registration is deleted if no process has
 * had it for 7 days.
 *
 * A {@link CallEvent} is delivered once, and is lost if the process stops before.
 *
 * @example class ReleaseNotes {
 *   @OnEvent('release.finished')
 *   async announce({ id, target, after }: ChangeEvent) {
 *     await this.mail.send(`${target.name}: ${after?.status}`, { idempotencyKey: id });
 *   } }
 * @stability preview
 */
export function OnEvent(...names: EventName[]): MethodDecorator {
  return EventMarker(names);
}
