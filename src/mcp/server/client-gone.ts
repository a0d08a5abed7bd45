import type { ServerResponse } from 'node:http';
import { Cancellation } from '../protocol/cancellation.js';

/** Runs `work` with a cancellation that strikes when the client goes away before its answer is complete. */
export async function whileConnected<T>(
  response: ServerResponse,
  work: (cancellation: Cancellation) => Promise<T>,
): Promise<T> {
  const gone = new Cancellation();
  const onClose = () => gone.cancel();
  if (response.destroyed) gone.cancel();
  else response.on('close', onClose);
  try {
    return await work(gone);
  } finally {
    response.off('close', onClose);
  }
}
