import type { TestAccount, TestApp } from '../app.js';
import type { ShownInvocation } from './invocations.js';
import { pathOf } from '../database/server-rows.js';

/** One event of the stream of a log. */
export interface LogEvent {
  id: string;
  event: string;
  data: { invocations?: ShownInvocation[] } & Partial<ShownInvocation>;
}

/** A listener of a server's log. */
export interface LogFollower {
  response: Response;
  /** Events received so far. */
  events: LogEvent[];
  /** The first messages of the invocations after `init`, in order. */
  told(): (string | undefined)[];
  /** True after the end of the stream, on either side. */
  ended: Promise<void>;
  /** Leaves. */
  close(): void;
}

/** Follows a log as a program does. @param query with its question mark */
export async function followLog(
  app: TestApp,
  owner: TestAccount,
  name: string,
  query = '',
  lastEventId?: string,
): Promise<LogFollower> {
  const leaving = new AbortController();
  const response = await fetch(`${app.url}${pathOf(name, '/logs/stream')}${query}`, {
    headers: {
      authorization: `Bearer ${owner.key}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: leaving.signal,
  });
  if (!response.body) throw new Error('A stream has a body');
  const events: LogEvent[] = [];
  const read = async (body: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      events.push(...blocks.filter((block) => !block.startsWith(':')).map(parse));
    }
  };
  return {
    response,
    events,
    told: () => events.filter(({ event }) => event === 'invocation').map(({ data }) => data.logs?.[0]?.message),
    ended: read(response.body).catch(() => undefined),
    close: () => leaving.abort(),
  };
}

function parse(block: string): LogEvent {
  const found = /^id: (.*)\nevent: (.*)\ndata: (\{.*\})$/.exec(block);
  if (!found) throw new Error(`No event: ${block}`);
  return { id: found[1], event: found[2], data: JSON.parse(found[3]) as LogEvent['data'] };
}
