import type { ServerResponse } from 'node:http';

/** Runs `work` with a signal that aborts when the client goes away before its answer is complete. */
export async function whileConnected<T>(
  response: ServerResponse,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const gone = new AbortController();
  const onClose = () => gone.abort();
  if (response.destroyed) gone.abort();
  else response.on('close', onClose);
  try {
    return await work(gone.signal);
  } finally {
    response.off('close', onClose);
  }
}
