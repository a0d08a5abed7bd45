import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from '@jest/globals';
import { LAST_BACKUP, loadEnv } from '../../config/env.js';
import { verifies } from '../../../test/support/verifies.js';
import { firstRun } from './first-run.js';

/** The guides of the items that are shown. */
function guides(settings: Record<string, string>, parts: Parameters<ReturnType<typeof loadEnv>['copyWith']>[0] = {}) {
  const shown = String(firstRun(loadEnv(settings).copyWith(parts), '../ui/', true, true) ?? '');
  return [...shown.matchAll(/<li><div>(.*?)[:.] .*?href="\.\.\/ui\/\.\.\/docs\/([^"]+)"/g)].map(([, ...item]) => item);
}

verifies('home:first-run', 'shows each item until it is done, and no list when nothing is left', () => {
  const DATA_DIR = mkdtempSync(path.join(tmpdir(), 'slipway-first-run-'));
  const done = { DATA_DIR, PUBLIC_URL: 'https://mcp.example.com', DEFAULT_VISIBILITY: 'private' };
  const address = [
    'Set PUBLIC_URL to the address by which people reach this service',
    'guides/operate.md#address-and-proxy',
  ];
  const backup = ['Make a backup', 'guides/operate.md#backup-and-restore'];
  try {
    expect(firstRun(loadEnv(done), '', true, true)).toBeNull();
    expect(String(firstRun(loadEnv(done), '', false, true))).toContain('Invite the second person.');
    expect(String(firstRun(loadEnv(done), '', true, false))).toContain('Connect or publish a first server.');
    expect(guides({ DATA_DIR })).toEqual([
      address,
      ['Choose with DEFAULT_VISIBILITY who finds new servers', 'reference/access.md#visibility'],
    ]);
    const tls = ['Put a proxy with TLS before this service', 'guides/operate.md#address-and-proxy'];
    expect(guides({ ...done, PUBLIC_URL: 'http://mcp.example.com' })).toEqual([tls]);
    expect(guides({ ...done, PUBLIC_URL: '', HOST: '0.0.0.0' })).toEqual([address, tls]);
    expect(guides(done, { storesKeysWithData: true })).toEqual([
      ['Move the encryption keys from DATA_DIR into ENCRYPTION_KEYS', 'guides/operate.md#encryption-keys'],
    ]);
    expect(guides(done, { embeddedFolder: DATA_DIR })).toEqual([backup]);
    writeFileSync(path.join(DATA_DIR, LAST_BACKUP), '');
    expect(guides(done, { embeddedFolder: DATA_DIR })).toEqual([]);
  } finally {
    rmSync(DATA_DIR, { recursive: true });
  }
});
