import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

export interface ThreadRequest {
  file: string;
  input: unknown;
}

/** `started` once the file is loaded, then the outcome. */
export type ThreadMessage = 'started' | { result: unknown } | { error: Error };

const root = new URL('../../', import.meta.url);
const jobs = new Map<string, (input: unknown) => unknown>();

async function loadJob(file: string): Promise<(input: unknown) => unknown> {
  const { job } = (await import(new URL(file, root).href)) as { job: (input: unknown) => unknown };
  jobs.set(file, job);
  return job;
}

// The event loop takes precedence. On other systems the priority would be that of the process.
if (process.platform === 'linux') setPriority(10);

const send = (message: ThreadMessage) => parentPort?.postMessage(message);

parentPort?.on('message', ({ file, input }: ThreadRequest) => {
  void (async () => {
    try {
      const job = jobs.get(file) ?? (await loadJob(file));
      send('started');
      send({ result: job(input) });
    } catch (error) {
      send({ error: error as Error });
    }
  })();
});
