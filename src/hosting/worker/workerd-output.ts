import type { TraceLine } from '../hosting.types.js';
import { FILES } from './workerd-config.js';
import { parseBounded } from '../../platform/text/json-bounds.js';

/** One line of workerd's output: of the code's console, or of workerd itself. */
export type OutputLine = { by: 'code'; line: TraceLine } | { by: 'workerd'; message: string };

const OUR_PLACES = new RegExp(
  `\\n *(?:at|imported from) (?:[^\\n]*\\()?"?(?:${[FILES.main, FILES.prelude, FILES.wrapper].join('|').replaceAll('.', '\\.')})[^\\n]*`,
  'g',
);

const LEVELS: readonly string[] = ['debug', 'info', 'log', 'warn', 'error'];

/**
 * Parses a line of workerd's structured log. A line of the code has a numeric time and no source; workerd's own have a
 * source, which the code cannot forge, since its output is the text of a message. Lines that are not JSON come from V8
 * or the allocator.
 *
 * @param now time of lines printed while the module loads, which have none
 */
export function readOutputLine(text: string, now: Date): OutputLine {
  const { timestamp, level, message, source } = parsed(text);
  if (typeof message !== 'string') return { by: 'workerd', message: text };
  if (typeof timestamp !== 'number' || source !== undefined) return { by: 'workerd', message };
  const at = timestamp > 0 ? timestamp : now.getTime();
  return { by: 'code', line: { at, level: levelOf(level), message } };
}

/** Level of a console line; `log` for unknown ones. */
export function levelOf(level: unknown): TraceLine['level'] {
  return LEVELS.includes(level as string) ? (level as TraceLine['level']) : 'log';
}

function parsed(text: string): Record<string, unknown> {
  if (!text.startsWith('{')) return {};
  try {
    return parseBounded(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** True if workerd, V8 or its allocator reports exhausted memory. */
export function saysOutOfMemory(message: string): boolean {
  return /heap out of memory|Reached heap limit|out of memory|std::bad_alloc|OOM error in V8|Cannot allocate memory/i.test(
    message,
  );
}

/**
 * Part of workerd's own line for the author: the error of the code with its position, and no internals of workerd or
 * this host. Null for a line unrelated to the code.
 */
export function forAuthor(message: string): string | null {
  const found =
    /^service program: (?:Uncaught )?([^]+)$/.exec(message)?.[1] ?? /remote\.jsg\.([^]+)$/.exec(message)?.[1];
  return found === undefined ? null : withoutOurs(found.replace(/\n {2}(at|imported from) /g, '\n    $1 ')).trim();
}

/** A stack without the frames of the wrapper. */
export function withoutOurs(stack: string): string {
  return stack.replace(OUR_PLACES, '');
}
