import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { CallEvent, ChangeEvent, EventName } from './event.types.js';
import { EventMarker } from './on-event.decorator.js';

/** Calls a method with an event. */
export type Handle = (event: ChangeEvent | CallEvent) => Promise<unknown>;

/** A method with `@OnEvent`. */
export interface EventHandler {
  /** `Module.Provider.method` */
  name: string;
  events: EventName[];
  handle: Handle;
}

/** Finds the methods with `@OnEvent` of this process. */
@Injectable()
export class EventHandlers {
  constructor(
    private readonly discoveryService: DiscoveryService,
    private readonly metadataScanner: MetadataScanner,
  ) {}

  /** @throws Error for two methods of one name, whose events would be mixed up */
  find(): EventHandler[] {
    const instances = new Set<object>();
    const handlers = this.discoveryService.getProviders().flatMap((wrapper) => {
      const instance = wrapper.isDependencyTreeStatic() ? (wrapper.instance as Record<string, Handle> | null) : null;
      // A provider may have several tokens.
      if (typeof instance !== 'object' || instance === null || instances.has(instance)) return [];
      instances.add(instance);
      return this.metadataScanner
        .getAllMethodNames(Object.getPrototypeOf(instance) as object | null)
        .flatMap((method) => {
          const events = this.discoveryService.getMetadataByDecorator(EventMarker, wrapper, method);
          const name = `${wrapper.host?.name}.${instance.constructor.name}.${method}`;
          return events
            ? [{ name, events, handle: async (event: Parameters<Handle>[0]) => instance[method](event) }]
            : [];
        });
    });
    const names = handlers.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice) throw new Error(`Two methods with @OnEvent are named ${twice}: give the class of one another name`);
    return handlers;
  }
}
