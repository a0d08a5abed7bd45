import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endAfterFile } from '../jest/leftovers.mjs';
import { freePort } from '../upstream/upstream-net.js';

/** The server of notification-server.mjs, in a process of its own. */
export interface NotificationServer {
  /** Its MCP endpoint. */
  url: string;
  /** Sends list changes to every session, and updates of resources to subscribers. */
  tell(): Promise<void>;
  /** The log levels of its sessions. */
  levels(): Promise<string[]>;
  /** Ends it by SIGKILL and starts it on the same port, without its sessions. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startNotificationServer(): Promise<NotificationServer> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const program = fileURLToPath(new URL('./notification-server.mjs', import.meta.url));
  const start = async () => {
    const child = spawn(process.execPath, [program, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const forget = endAfterFile(() => child.kill('SIGKILL'));
    const exited = once(child, 'exit').finally(forget);
    await once(child.stdout, 'data');
    return async () => {
      child.kill('SIGKILL');
      await exited;
    };
  };
  let kill = await start();
  return {
    url: `${origin}/mcp`,
    tell: async () => void (await fetch(`${origin}/tell`, { method: 'POST' })),
    levels: async () => (await (await fetch(`${origin}/levels`)).json()) as string[],
    restart: async () => {
      await kill();
      kill = await start();
    },
    close: () => kill(),
  };
}
