import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { LAST_BACKUP, loadEnv } from '../../config/env.js';
import { examineDefaults } from './default-checks.js';

const DATA_DIR = mkdtempSync(path.join(tmpdir(), 'slipway-defaults-'));
const PUBLIC_URL = 'https://mcp.example.com';
const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
const safe = { DATA_DIR, PUBLIC_URL, ENCRYPTION_KEYS, TRUST_PROXY: '127.0.0.1' };
const DATABASE_URL = 'postgres://slipway@127.0.0.1/slipway';
const BOOTSTRAP_API_KEY = `slipway_${'a'.repeat(43)}`;

afterAll(() => rmSync(DATA_DIR, { recursive: true }));

/** What is said of these settings, until the advice. */
async function faultsOf(settings: Record<string, string>): Promise<string[]> {
  const { faults } = await examineDefaults(loadEnv(settings));
  expect(faults.every(({ isFatal }) => !isFatal)).toBe(true);
  return faults.map(({ text }) => text);
}

describe('unsafe defaults', () => {
  it('are not named while only this machine uses the service', async () => {
    expect(await faultsOf({ DATA_DIR })).toEqual([]);
    expect(await faultsOf({ DATA_DIR, DEFAULT_VISIBILITY: 'public' })).toEqual([]);
    expect(await faultsOf({ ...safe, PUBLIC_URL: 'http://localhost:3000', DEFAULT_VISIBILITY: 'public' })).toEqual([]);
    expect(await faultsOf(safe)).toEqual([]);
  });

  const unsafe: [subject: string, settings: Record<string, string>, text: RegExp][] = [
    ['no address', { HOST: '0.0.0.0', PUBLIC_URL: '' }, /^PUBLIC_URL is not set: links begin with http:\/\/localhost/],
    ['no https', { PUBLIC_URL: 'http://mcp.example.com' }, /^PUBLIC_URL is not https.*set PUBLIC_URL to its https/],
    ['no trusted proxy', { TRUST_PROXY: '' }, /^TRUST_PROXY is not set.*set TRUST_PROXY to the addresses/],
    ['public servers', { DEFAULT_VISIBILITY: 'public' }, /^New servers are public.*set DEFAULT_VISIBILITY to/],
    ['a first key', { BOOTSTRAP_API_KEY, DATABASE_URL }, /^BOOTSTRAP_API_KEY is set.*unset BOOTSTRAP_API_KEY/],
    ['keys next to the data', { ENCRYPTION_KEYS: '' }, /^The encryption keys are in DATA_DIR.*into ENCRYPTION_KEYS/],
  ];
  it.each(unsafe)('name %s with the setting that changes it', async (_, settings, text) => {
    expect(await faultsOf({ ...safe, ...settings })).toEqual([expect.stringMatching(text)]);
  });

  it('count for a service on all addresses with a database of its own', async () => {
    const settings = { ...safe, PUBLIC_URL: '', HOST: '0.0.0.0', DEFAULT_VISIBILITY: 'public' };
    expect(await faultsOf(settings)).toHaveLength(1);
    expect(await faultsOf({ ...settings, DATABASE_URL })).toEqual([
      expect.stringMatching(/^PUBLIC_URL is not set/),
      expect.stringMatching(/^New servers are public/),
    ]);
  });

  it('name a missing backup of the embedded database, and a first key that is no longer needed', async () => {
    writeFileSync(path.join(DATA_DIR, 'pg-location'), DATA_DIR);
    const both = await faultsOf({ ...safe, BOOTSTRAP_API_KEY });
    expect(both).toEqual([
      expect.stringMatching(/^BOOTSTRAP_API_KEY is set/),
      expect.stringMatching(/^The embedded database has no backup: create one with/),
    ]);
    writeFileSync(path.join(DATA_DIR, LAST_BACKUP), '');
    expect(await faultsOf(safe)).toEqual([]);
  });
});
