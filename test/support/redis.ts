import { spawn, type ChildProcess } from 'node:child_process';
import { endAfterFile } from './jest/leftovers.mjs';
import { until } from './until.js';

/** Debian's Redis. Tests that need one are left out where it is missing. */
export const REDIS_SERVER = '/usr/bin/redis-server';

/** A Redis that keeps nothing, ready to answer. It ends with the test file. */
export async function startRedis(port: number): Promise<ChildProcess> {
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn(REDIS_SERVER, [...options, '--maxmemory-policy', 'noeviction'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  endAfterFile(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  await until(() => said.includes('Ready to accept connections'), 'Redis is up');
  return child;
}
