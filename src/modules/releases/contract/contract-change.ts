import { quote } from '../../../platform/text/quoted.js';
import type { LogLine } from '../release.entity.js';
import type { Stage } from '../release-state.js';

/** Severity: harmless, needs a review, or breaking for callers that work today or rely on today's safety. */
export const changeLevels = ['compatible', 'risky', 'breaking'] as const;
export type ChangeLevel = (typeof changeLevels)[number];

const LINES_MAX = 50;

interface LineContext {
  stage: Stage;
  /** The end of the message "What the server offers changed …". */
  since: string;
}

export const contractSummaries = ['none', ...changeLevels] as const;
export type ContractSummary = (typeof contractSummaries)[number];

/** Finders of changes: a release that became current, or a rescan. */
export const contractFinders = ['release', 'rescan'] as const;
export type ContractFinder = (typeof contractFinders)[number];

export interface ContractChange {
  kind: string;
  level: ChangeLevel;
  /** Null for a resource or a prompt. */
  tool: string | null;
  /** The location in the tool, `inputSchema.city`, or another item, `prompts.review`. Null for a whole tool. */
  path: string | null;
  /** Message that is shown after tool and path. */
  message: string;
}

export function summaryOf(changes: ContractChange[]): ContractSummary {
  return [...changeLevels].reverse().find((level) => changes.some((change) => change.level === level)) ?? 'none';
}

export function contractLines(changes: ContractChange[], { stage, since }: LineContext): LogLine[] {
  if (changes.length === 0) return [];
  const counts = [...changeLevels]
    .reverse()
    .map((level) => [changes.filter((change) => change.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => `${count} ${level}`);
  const summary = `What the server offers changed ${since}: ${counts.join(', ')}`;
  const isBreaking = changes.some(({ level }) => level === 'breaking');
  const first = changes.slice(0, changes.length > LINES_MAX - 1 ? LINES_MAX - 2 : LINES_MAX - 1);
  const more = changes.length - first.length;
  return [
    { stage, level: isBreaking ? 'warning' : 'info', message: summary },
    ...first.map(({ level, tool, path, message }): LogLine => {
      const where = [...(tool === null ? [] : [`tool ${quote(tool)}`]), ...(path === null ? [] : [path])].join(', ');
      const lineLevel = level === 'breaking' ? 'warning' : 'info';
      return { stage, level: lineLevel, message: `${level}: ${where}: ${message}` };
    }),
    ...(more > 0 ? [{ stage, level: 'info', message: `${more} more changes` } satisfies LogLine] : []),
  ];
}
