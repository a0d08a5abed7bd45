import { expect, it } from '@jest/globals';
import { loadEnv } from '../config/env.js';
import { openFilesFault } from './open-files.js';

const limitsOf = (soft: string) =>
  `Limit                     Soft Limit           Hard Limit           Units
Max processes             7892                 7892                 processes
Max open files            ${soft.padEnd(20)} 1048576              files
`;

it('says so when a process may open fewer files than it accepts connections', () => {
  const env = loadEnv({ HTTP_CONNECTIONS_MAX: '20000' });
  expect(openFilesFault(env, limitsOf('4096'))).toMatch(/^This process may open 4096 files.* needs 21024: raise/);
  for (const enough of ['21024', '1048576', 'unlimited']) expect(openFilesFault(env, limitsOf(enough))).toBeNull();
  expect(openFilesFault(env, '')).toBeNull();
});

it('reads the limits of this process', () => {
  const most = loadEnv({ HTTP_CONNECTIONS_MAX: '1000000' });
  expect(() => openFilesFault(most)).not.toThrow();
  expect(openFilesFault(loadEnv({ HTTP_CONNECTIONS_MAX: '1' }))).toBeNull();
});
