import type { TestAccount, TestApp } from '../app.js';
import { releasesPath } from './releases.js';

/** One server-sent event of a release. */
export interface StreamEvent {
  id: string;
  event: string;
  data: Record<string, unknown>;
}

/** A listener of a release's stream. */
export interface Follower {
  response: Response;
  /** Events received so far. */
  events: StreamEvent[];
  /** Text received so far. */
  text(): string;
  /** True after the end of the stream, on either side. */
  ended: Promise<void>;
  /** Leaves. */
  close(): void;
}

/** Listens to a release as a program does, from its start or from what it has already. */
export async function followRelease(
  app: TestApp,
  owner: TestAccount,
  name: string,
  id: string,
  lastEventId?: string,
): Promise<Follower> {
  const leaving = new AbortController();
  const response = await fetch(`${app.url}${releasesPath(name, `/${id}/stream`)}`, {
    headers: {
      authorization: `Bearer ${owner.key}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: leaving.signal,
  });
  if (!response.body) throw new Error('A stream has a body');
  const events: StreamEvent[] = [];
  let text = '';
  let rest = '';
  const read = async (body: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      const piece = decoder.decode(chunk, { stream: true });
      text += piece;
      const blocks = (rest + piece).split('\n\n');
      rest = blocks.pop() ?? '';
      events.push(...blocks.filter((block) => !block.startsWith(':')).map(parse));
    }
  };
  const ended = read(response.body).catch(() => undefined);
  return { response, events, text: () => text, ended, close: () => leaving.abort() };
}

function parse(block: string): StreamEvent {
  const found = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block);
  if (!found) throw new Error(`No event: ${block}`);
  return { id: found[1], event: found[2], data: JSON.parse(found[3]) as Record<string, unknown> };
}
