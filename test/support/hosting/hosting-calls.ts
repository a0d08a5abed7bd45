import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { HostDirectory } from '../../../src/hosting/cluster/host-directory.js';
import { ranked } from '../../../src/hosting/cluster/host-selector.js';
import { ProcessRegistry } from '../../../src/platform/processes/process-registry.js';
import { Hosting } from '../../../src/hosting/hosting.js';
import type { HostedRequest, ProgramRef } from '../../../src/hosting/hosting.types.js';
import type { TestApp } from '../app.js';

/** Answer to a request to a program. */
export interface Answered {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** A request under way. */
export interface Asking {
  /** Text received so far. */
  heard(): string;
  controller(): Dispatcher.DispatchController | null;
  /** Rejects with the error that the handler received. */
  answer: Promise<Answered>;
}

export function programRef(overrides: Partial<ProgramRef> = {}): ProgramRef {
  const ownerId = randomUUID();
  return { kind: 'release', id: ownerId, ownerId, engine: 'worker', isStateful: false, ...overrides };
}

/** Sends a request to a program from this process. `onData` sees the pieces. */
export function begin(
  app: TestApp,
  ref: ProgramRef,
  path: string,
  {
    onData,
    ...request
  }: Partial<HostedRequest> & { onData?: (controller: Dispatcher.DispatchController) => void } = {},
): Asking {
  const chunks: Buffer[] = [];
  let controller: Dispatcher.DispatchController | null = null;
  const answer = new Promise<Answered>((resolve, reject) => {
    let head: Pick<Answered, 'status' | 'headers'> = { status: 0, headers: {} };
    let ends = 0;
    const end = (work: () => void) => {
      ends += 1;
      if (ends > 1) throw new Error('told twice how it ended');
      work();
    };
    app.get(Hosting).dispatch(
      ref,
      { method: 'POST', path, headers: { host: 'program' }, isStream: false, ...request },
      {
        onRequestStart: (started) => {
          if (controller) throw new Error('started twice');
          controller = started;
        },
        onResponseStart: (_controller, status, headers) => (head = { status, headers }),
        onResponseData: (started, chunk) => {
          chunks.push(chunk);
          onData?.(started);
        },
        onResponseEnd: () => end(() => resolve({ ...head, text: Buffer.concat(chunks).toString() })),
        onResponseError: (_controller, error) => end(() => reject(error)),
      },
    );
  });
  answer.catch(() => undefined);
  return { answer, heard: () => Buffer.concat(chunks).toString(), controller: () => controller };
}

export function ask(app: TestApp, ref: ProgramRef, path: string, request: Partial<HostedRequest> = {}) {
  return begin(app, ref, path, request).answer;
}

/** Name of the host that answers for the program, and its number of calls. */
export async function whoRuns(app: TestApp, ref: ProgramRef): Promise<{ name: string; calls: number }> {
  return JSON.parse((await ask(app, ref, '/who')).text) as { name: string; calls: number };
}

/** A program whose first choice is the host of `app`. @throws when no process knows that host any more */
export async function programOf(app: TestApp, overrides: Partial<ProgramRef> = {}): Promise<ProgramRef> {
  const hosts = await app.get(HostDirectory).live();
  const { id } = app.get(ProcessRegistry);
  if (!hosts.some((host) => host.id === id)) throw new Error('This host has lost its lease.');
  for (;;) {
    const ref = programRef(overrides);
    if (ranked(ref.ownerId, hosts)[0]?.id === id) return ref;
  }
}
