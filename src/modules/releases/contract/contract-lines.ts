import { quoted } from '../../../platform/text/quoted.js';
import type { LogLine } from '../release-log.entity.js';
import type { Stage } from '../release-state.js';
import { changeLevels, type ContractChange } from './contract-change.js';

/** Most log lines about the changes of one release. */
const LINES_MAX = 50;

/** Context of the log lines. */
interface LineContext {
  stage: Stage;
  /** Ends the sentence "What the server offers changed …". */
  since: string;
}

/** Log lines about changes: a summary, then one line for each change. */
export function contractLines(changes: ContractChange[], { stage, since }: LineContext): LogLine[] {
  if (changes.length === 0) return [];
  const counts = [...changeLevels]
    .reverse()
    .map((level) => [changes.filter((change) => change.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => `${count} ${level}`);
  const summary = `What the server offers changed ${since}: ${counts.join(', ')}`;
  const isBreaking = changes.some(({ level }) => level === 'breaking');
  const shown = changes.slice(0, changes.length > LINES_MAX - 1 ? LINES_MAX - 2 : LINES_MAX - 1);
  const more = changes.length - shown.length;
  return [
    { stage, level: isBreaking ? 'warning' : 'info', message: summary },
    ...shown.map((change) => toLine(change, stage)),
    ...(more > 0 ? [{ stage, level: 'info', message: `${more} more changes` } satisfies LogLine] : []),
  ];
}

function toLine({ level, tool, path, message }: ContractChange, stage: Stage): LogLine {
  const where = [...(tool === null ? [] : [`tool ${quoted(tool)}`]), ...(path === null ? [] : [path])].join(', ');
  return {
    stage,
    level: level === 'breaking' ? 'warning' : 'info',
    message: `${level}: ${where}: ${message}`,
  };
}
