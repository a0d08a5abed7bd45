/**
 * The reference servers of test/vendor, each in a process of its own. Both speak 2026-07-28, and older revisions with
 * sessions.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const files = { 'conformance-server': 'everything-server.ts', 'typescript-sdk-server': 'everythingServer.ts' };

export const referenceServers = Object.keys(files);

/** A port that was free a moment ago, below the system's range for outgoing connections. */
async function freePort() {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const probe = createServer().listen(port);
    const isFree = await Promise.race([
      once(probe, 'listening').then(() => true),
      once(probe, 'error').then(() => false),
    ]);
    await new Promise((resolve) => probe.close(resolve));
    if (isFree) return port;
  }
}

/**
 * Starts the server `name` on `port`, or on a free one. Resolves when it listens.
 *
 * @returns its `url`, its `port`, and `kill`, which ends it by SIGKILL and waits for its end
 */
export async function startReferenceServer(name, port) {
  const chosen = port ?? (await freePort());
  const source = await readFile(`${root}/test/vendor/${name}/${files[name]}`, 'utf8');
  const { code } = await transform(source.replace(/^#!.*/, ''), { loader: 'ts', format: 'esm', target: 'node20' });
  // Read from stdin, the program finds its packages from the folder it runs in.
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    cwd: root,
    env: { PATH: process.env.PATH, PORT: String(chosen) },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit').finally(() => process.off('exit', kill));
  child.stdin.end(code);
  let output = '';
  await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        if (output.includes(`running on http://localhost:${chosen}`)) resolve();
      });
    }
    exited.then(() => reject(new Error(`The server ${name} ended:\n${output}`)), reject);
  });
  return {
    url: `http://127.0.0.1:${chosen}/mcp`,
    port: chosen,
    kill: async () => {
      kill();
      await exited;
    },
  };
}
