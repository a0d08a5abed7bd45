/**
 * Deletions by age take `deletionTime`: what both the database's clock and that of the process call old, as `scheduledDeletion` does. This test names the
 * other places, and the statements that may compare with one clock, each with its reason.
 */
import { readFileSync } from 'node:fs';
import { expect } from '@jest/globals';
import { filesUnder, repoPath } from '../scripts/lib.mjs';
import { verifies } from './support/verifies.js';

const byBothClocks = [
  'hosting/runtime/runtime.parts.ts',
  'mcp/eras/era.repository.ts',
  'mcp/server/sessions/session-mark.repository.ts',
  'mcp/server/tasks/mcp-task.repository.ts',
  'modules/authorization-server/authorization-server.repository.ts',
  'modules/connections/mock/mock.repository.ts',
  'modules/logs/store/partition-maintenance.ts',
  'modules/oauth/credential.repository.ts',
  'modules/releases/blob-sweeper.ts',
  'modules/releases/releases.repository.ts',
  'modules/tool-schemas/tool-shape.repository.ts',
  'platform/schedule/schedule.ts',
];

const byOneClock: Record<string, string> = {
  'modules/connections/uplink/uplink-tunnels.repository.ts': 'a lease that has ended says that its tunnel is gone',
  'platform/processes/processes.repository.ts': 'a lease that has ended says that its process is gone',
  'platform/embedded/server-files.ts': 'half-made files of a start of the embedded Postgres, before a database runs',
};

const sources = filesUnder('src')
  .map((path) => repoPath(path))
  .filter((file) => /(?<!\.spec)\.ts$/.test(file))
  .map((file) => ({ file: file.replace('src/', ''), text: readFileSync(file, 'utf8') }));

const filesWith = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ file }) => file);

verifies('delete:two-clocks', 'is how every deletion by age is decided', () => {
  expect(filesWith(/(?<!function )deletionTime\(\w/)).toEqual(byBothClocks);
  // A DELETE that asks a clock in its statement, TypeORM's delete() beside one, and files removed by the time of their change.
  const inSql = /DELETE FROM [^`']*(?:now\(\)|current_date|clock_timestamp)/;
  const inCode = /delete\([^;]*(?:new Date\(\)|Date\.now\(\))|mtime(?:Ms)? *[<>] *Date|Date\.now\(\) - \w+\.mtime/;
  expect([...filesWith(inSql), ...filesWith(inCode)].sort()).toEqual(Object.keys(byOneClock).sort());
});
