import type { TestAccount, TestApp } from '../app.js';
import { releasesPath } from './releases.js';

/** One server-sent event. */
export interface StreamEvent<Data = Record<string, unknown>> {
  id: string;
  event: string;
  data: Data;
}

/** A listener of a stream of events. */
export interface Follower<Data = Record<string, unknown>> {
  response: Response;
  /** Events received so far. */
  events: StreamEvent<Data>[];
  /** Text received so far. */
  text(): string;
  /** Resolves at the end of the stream, on either side. */
  ended: Promise<void>;
  /** Leaves. */
  close(): void;
}

/** Listens to a stream as a program does, from its start or from what it has already. */
export async function followEvents<Data>(
  app: TestApp,
  owner: TestAccount,
  path: string,
  lastEventId?: string,
): Promise<Follower<Data>> {
  const leaving = new AbortController();
  const headers = {
    authorization: `Bearer ${owner.key}`,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  const response = await fetch(`${app.url}${path}`, { headers, signal: leaving.signal });
  if (!response.body) throw new Error('A stream has a body');
  const events: StreamEvent<Data>[] = [];
  let text = '';
  let rest = '';
  const read = async (body: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      const piece = decoder.decode(chunk, { stream: true });
      text += piece;
      const blocks = (rest + piece).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks.filter((all) => !all.startsWith(':'))) {
        const fields = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block);
        if (!fields) throw new Error(`No event: ${block}`);
        events.push({ id: fields[1], event: fields[2], data: JSON.parse(fields[3]) as Data });
      }
    }
  };
  const ended = read(response.body).catch(() => undefined);
  return { response, events, text: () => text, ended, close: () => leaving.abort() };
}

/** Listens to a release. */
export function followRelease(
  app: TestApp,
  owner: TestAccount,
  name: string,
  id: string,
  lastEventId?: string,
): Promise<Follower> {
  return followEvents(app, owner, releasesPath(name, `/${id}/stream`), lastEventId);
}
