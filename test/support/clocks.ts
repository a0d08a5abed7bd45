import type { OnApplicationShutdown } from '@nestjs/common';
import type { TestApp } from './app.js';

/**
 * Ends what these services do by the clock, and what of it is under way: from then on a test alone decides when they work.
 * For tests of what one sweep does, which another one in between would spoil.
 */
export async function stopClocks(
  app: Pick<TestApp, 'get'>,
  ...services: (abstract new (...args: never[]) => OnApplicationShutdown)[]
): Promise<void> {
  await Promise.all(services.map((service) => app.get(service).onApplicationShutdown()));
}
