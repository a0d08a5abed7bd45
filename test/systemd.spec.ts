import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

// scripts/test.mjs leaves this file out, with a note, where there is no systemd-analyze.
const unit = readFileSync('docker/slipway.service', 'utf8');

/** Runs a command of systemd-analyze on a unit, with the Node of the machine that runs the test. */
function analyze(text: string, ...command: string[]): { status: number | null; lines: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-unit-'));
  try {
    const file = join(folder, 'slipway.service');
    writeFileSync(file, text.replace('/usr/bin/node', process.execPath));
    const { status, stderr } = spawnSync('systemd-analyze', [...command, file], { encoding: 'utf8' });
    return { status, lines: stderr.split('\n').filter((line) => line.includes('slipway.service')) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('docker/slipway.service', () => {
  it('is accepted by systemd, which misses a directive that it does not know', () => {
    const verify = (text: string) => analyze(text.replace('User=slipway', 'User=root'), 'verify', '--man=no');
    expect(verify(unit)).toEqual({ status: 0, lines: [] });
    expect(verify(unit.replace('UMask=', 'Umusk=')).lines).toEqual([expect.stringContaining('Umusk')]);
  });

  it('is hardened: an exposure of at most 3.5 of 10', () => {
    const audit = (text: string) => analyze(text, 'security', '--offline=true', '--no-pager', '--threshold=35').status;
    expect(audit(unit)).toBe(0);
    expect(audit(unit.replace('CapabilityBoundingSet=\n', ''))).toBe(1);
  });

  it('covers no file of /proc, without which hosted code would have no processes and files of its own', () => {
    expect(unit).not.toMatch(/^(ProtectKernelLogs|ProtectHostname|ProtectKernelTunables|ProtectProc|ProcSubset)=/m);
  });

  it('is reloaded by the signal that replaces workers in turn', () => {
    expect(unit).toContain('\nExecReload=/bin/kill -HUP $MAINPID\n');
  });
});
