import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { endAfterFile } from '../jest/leftovers.mjs';
import { freePort } from './upstream-net.js';

/** The running reference server. */
export interface EverythingServer {
  /** The MCP endpoint, `http://127.0.0.1:<port>/mcp`. */
  url: string;
  /** Kills the server's process group and waits for its end. Called when the test file is over, too. */
  close(): Promise<void>;
}

/** Spawns the official server-everything over streamable HTTP. Resolves when it listens, rejects if it exits before. */
export async function startEverything(): Promise<EverythingServer> {
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json');
  const port = await freePort();
  const child = spawn(process.execPath, [join(dirname(manifest), 'dist', 'index.js'), 'streamableHttp'], {
    detached: true,
    env: { ...process.env, PORT: String(port), NODE_OPTIONS: '' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      process.kill(-child.pid, 'SIGKILL');
    }
    await exited;
  };
  endAfterFile(close);

  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      lines.push(line);
      if (line.includes(`listening on port ${port}`)) resolve();
    });
    exited.then(() => reject(new Error(`server-everything exited:\n${lines.join('\n')}`)), reject);
  });
  return { url: `http://127.0.0.1:${port}/mcp`, close };
}
