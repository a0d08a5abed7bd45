import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

interface Rules {
  groups: { rules: { expr: string }[] }[];
}
interface Dashboard {
  panels: { targets: { expr: string }[] }[];
}

/** The sample of alert rules. */
export const RULES = 'docker/prometheus-rules.yml';

const rules = parse(readFileSync(RULES, 'utf8')) as Rules;
const dashboard = JSON.parse(readFileSync('docker/grafana/dashboard.json', 'utf8')) as Dashboard;

/** PromQL of each line in the dashboard. */
export const panelExpressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
/** PromQL of each alert. */
export const alertExpressions = rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr));
