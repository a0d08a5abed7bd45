import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

/** A test of `promtool test rules`: whether an alert fires after an hour and five minutes of these series. */
function fires(alertname: string, series: Record<string, string>): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-alerts-'));
  try {
    copyFileSync(RULES, join(folder, 'rules.yml'));
    const input_series = Object.entries(series).map(([name, values]) => ({ series: name, values }));
    const tests = [
      { interval: '1m', input_series, alert_rule_test: [{ eval_time: '65m', alertname, exp_alerts: [] }] },
    ];
    writeFileSync(join(folder, 'test.yml'), stringify({ rule_files: ['rules.yml'], tests }));
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yml'], {
      cwd: folder,
      encoding: 'utf8',
    });
    if (status !== 0) expect(stdout + stderr).toContain(`alertname: ${alertname}`);
    return status !== 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A value that stays for 65 minutes. Times count from 0, the time at which a test of promtool begins. */
const stays = (value: number) => `${value}x65`;

it.each<[string, string, Record<string, string>, boolean]>([
  ['SlipwayNoWorker', 'without a worker', { 'slipway_build_info{role="api,host"}': stays(1) }, true],
  ['SlipwayNoWorker', 'with one among others', { 'slipway_build_info{role="api,worker,host"}': stays(1) }, false],
  ['SlipwayBackupOld', 'of two days', { slipway_last_backup_timestamp_seconds: stays(-2 * 86_400) }, true],
  ['SlipwayBackupOld', 'of yesterday', { slipway_last_backup_timestamp_seconds: stays(-86_400) }, false],
  [
    'SlipwayBackupOld',
    'by a job on Kubernetes',
    { 'kube_cronjob_status_last_successful_time{cronjob="slipway-backup"}': stays(-2 * 86_400) },
    true,
  ],
  [
    'SlipwayOpenFiles',
    'at 90 %',
    { 'process_open_fds{job="slipway"}': stays(900), 'process_max_fds{job="slipway"}': stays(1000) },
    true,
  ],
  [
    'SlipwayOpenFiles',
    'at 70 %',
    { 'process_open_fds{job="slipway"}': stays(700), 'process_max_fds{job="slipway"}': stays(1000) },
    false,
  ],
])('%s %s', (alertname, _case, series, expected) => {
  expect(fires(alertname, series)).toBe(expected);
});
