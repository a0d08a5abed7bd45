import type { Socket } from 'node:net';

/**
 * Joins two sockets until both are closed; a side that ends in order may still be answered. They are cut after `idleMs`
 * without a byte, after `totalMs` in any case, and when one of them fails. A side that does not read makes the other wait.
 * Resolves when both are closed; never rejects.
 */
export async function tunnel(near: Socket, far: Socket, limits: { idleMs: number; totalMs: number }): Promise<void> {
  const cut = (): void => {
    near.destroy();
    far.destroy();
  };
  if (near.destroyed || far.destroyed) cut();
  const timer = setTimeout(cut, limits.totalMs);
  for (const side of [near, far]) side.on('error', cut).setTimeout(limits.idleMs, cut);
  near.once('close', () => far.destroySoon()).pipe(far);
  far.once('close', () => near.destroySoon()).pipe(near);
  await Promise.all([closing(near), closing(far)]);
  clearTimeout(timer);
}

function closing(side: Socket): Promise<void> {
  if (side.closed) return Promise.resolve();
  return new Promise((resolve) => side.once('close', resolve));
}
