import type { TestAccount, TestApp } from '../app.js';
import { pathOf } from '../database/server-rows.js';
import { followEvents, type Follower } from '../releases/release-follower.js';
import type { ShownInvocation } from './invocations.js';

/** A listener of a server's log. */
export interface LogFollower extends Follower<{ invocations?: ShownInvocation[] } & Partial<ShownInvocation>> {
  /** The first messages of the invocations after `init`, in order. */
  told(): (string | undefined)[];
}

/** Follows a log as a program does. @param query with its question mark */
export async function followLog(
  app: TestApp,
  owner: TestAccount,
  name: string,
  query = '',
  lastEventId?: string,
): Promise<LogFollower> {
  const path = `${pathOf(name, '/logs/stream')}${query}`;
  const follower = await followEvents<LogFollower['events'][number]['data']>(app, owner, path, lastEventId);
  const told = () =>
    follower.events.filter(({ event }) => event === 'invocation').map(({ data }) => data.logs?.[0]?.message);
  return { ...follower, told };
}
