import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

// scripts/test.mjs leaves this file out, with a note, where there is no systemd-analyze.
it('systemd accepts the unit, and would miss a directive that it does not know', () => {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-unit-'));
  const verify = (text: string) => {
    const file = join(folder, 'slipway.service');
    // The program and the account of the machine that runs the test.
    writeFileSync(file, text.replace('/usr/bin/node', process.execPath).replace('User=slipway', 'User=root'));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    return { status, lines: stderr.split('\n').filter((line) => line.includes('slipway.service')) };
  };
  try {
    const unit = readFileSync('docker/slipway.service', 'utf8');
    expect(verify(unit)).toEqual({ status: 0, lines: [] });
    expect(verify(unit.replace('UMask=', 'Umusk=')).lines).toEqual([expect.stringContaining('Umusk')]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
