import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { panelExpressions, RULES } from './support/logs/monitoring-samples.js';

const check = (file: string) => spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });

// scripts/test.mjs leaves this file out, with a note, where there is no promtool.
it('promtool accepts the expressions of the dashboard and the alert rules', () => {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-rules-'));
  try {
    const file = join(folder, 'dashboard.yml');
    const rules = panelExpressions.map((expr, index) => ({ record: `panel_${index}`, expr }));
    writeFileSync(file, stringify({ groups: [{ name: 'panels', rules }] }));
    for (const each of [RULES, file]) expect(check(each)).toMatchObject({ status: 0 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
