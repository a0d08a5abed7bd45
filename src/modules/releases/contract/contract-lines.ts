import { quoted } from '../../../platform/text/quoted.js';
import type { LogLine } from '../release-log.js';
import { changeLevels, type ContractChange } from './contract-change.js';

/** Lines of a release's log about changes, at most. */
const LINES_MAX = 50;

/** What a release's log says of the changes it makes: a summary, then one line for each, the worst first. */
export function contractLines(changes: ContractChange[], previousReleaseId: string): LogLine[] {
  if (changes.length === 0) return [];
  const counts = [...changeLevels]
    .reverse()
    .map((level) => [changes.filter((change) => change.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => `${count} ${level}`);
  const summary = `What the server offers changed since release ${previousReleaseId}: ${counts.join(', ')}`;
  const isBreaking = changes.some(({ level }) => level === 'breaking');
  const shown = changes.slice(0, changes.length > LINES_MAX - 1 ? LINES_MAX - 2 : LINES_MAX - 1);
  const more = changes.length - shown.length;
  return [
    { stage: 'publish', level: isBreaking ? 'warning' : 'info', message: summary },
    ...shown.map(toLine),
    ...(more > 0 ? [{ stage: 'publish', level: 'info', message: `${more} more changes` } satisfies LogLine] : []),
  ];
}

function toLine({ level, tool, path, message }: ContractChange): LogLine {
  const where = [...(tool === null ? [] : [`tool ${quoted(tool)}`]), ...(path === null ? [] : [path])].join(', ');
  return {
    stage: 'publish',
    level: level === 'breaking' ? 'warning' : 'info',
    message: `${level}: ${where}: ${message}`,
  };
}
