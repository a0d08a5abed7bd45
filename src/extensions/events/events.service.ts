import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DecoratedMethods, HOUR_MS, IntervalSchedule, withTimeout } from '../../extension.js';
import { type Delivery, EventDeliveriesRepository } from './event-deliveries.repository.js';
import type { ChangeEvent } from './event.types.js';
import { EventMarker } from './on-event.decorator.js';

type Handle = (event: ChangeEvent) => Promise<unknown>;

const EVERY_MS = 1_000;
const CONCURRENT_MAX = 16;
/** Shorter than the minute for which an event is claimed. */
const HANDLER_MS_MAX = 30_000;
const ATTEMPTS_MAX = 15;
const WAIT_SECONDS_MAX = 3_600;
const UNSEEN_MS_MAX = 7 * 24 * HOUR_MS;
const ERROR_CHARS_MAX = 500;

/** Calls methods with `@OnEvent`; idle without such a method. */
@Injectable()
export class EventsService implements OnApplicationBootstrap {
  private readonly logger = new Logger('events');
  private handles = new Map<string, Handle>();

  constructor(
    private readonly eventDeliveriesRepository: EventDeliveriesRepository,
    private readonly decoratedMethods: DecoratedMethods,
    private readonly intervalSchedule: IntervalSchedule,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const handlers = this.decoratedMethods.find(EventMarker).flatMap(({ name, options, call }) => {
      const actions = options.filter((event) => event !== 'call.finished');
      return actions.length > 0 ? [{ name, actions, handle: async (event: ChangeEvent) => call(event) }] : [];
    });
    if (handlers.length === 0) return;
    this.handles = new Map(handlers.map(({ name, handle }) => [name, handle]));
    const register = async () => {
      await this.eventDeliveriesRepository.register(new Map(handlers.map(({ name, actions }) => [name, actions])));
      await this.eventDeliveriesRepository.forgetBefore(new Date(Date.now() - UNSEEN_MS_MAX));
    };
    await register();
    this.intervalSchedule.every('registration of event handlers', HOUR_MS, register);
    this.intervalSchedule.every('delivery of events', EVERY_MS, () => this.deliver());
  }

  /** Delivers the events that are due. A slow handler delays only its own events. */
  async deliver(): Promise<void> {
    const deliverAll = async ([name, handle]: [string, Handle]) => {
      for (let due; (due = await this.eventDeliveriesRepository.claim(name, CONCURRENT_MAX)).length > 0;) {
        const handled = await Promise.all(due.map((delivery) => this.handle(delivery, handle)));
        await this.eventDeliveriesRepository.remove(
          name,
          due.flatMap(({ id }, index) => (handled[index] ? [id] : [])),
        );
      }
    };
    await Promise.all([...this.handles].map(deliverAll));
  }

  /** @returns false after a failure of the handler, which is recorded */
  private async handle(delivery: Delivery, handle: Handle): Promise<boolean> {
    const { handler, attempts, targetId, targetName, ...event } = delivery;
    try {
      const handled = handle({ ...event, target: { id: targetId, name: targetName } }).then(() => true);
      if (!(await withTimeout(HANDLER_MS_MAX, handled, false))) throw new Error('It did not end within 30 s');
      return true;
    } catch (error) {
      const isLast = attempts >= ATTEMPTS_MAX;
      const message = error instanceof Error ? error.message : String(error);
      this.logger.error({
        msg: `${handler} failed for ${event.name}${isLast ? ', for the last time' : ''}`,
        err: error,
      });
      const waitSeconds = isLast ? null : Math.min(2 ** (attempts - 1), WAIT_SECONDS_MAX);
      await this.eventDeliveriesRepository.fail(delivery, message.slice(0, ERROR_CHARS_MAX), waitSeconds);
      return false;
    }
  }
}
