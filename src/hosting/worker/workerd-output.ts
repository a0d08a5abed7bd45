import type { TraceLine } from '../hosting.types.js';
import { FILES } from './workerd-config.js';

/** One line workerd wrote: of the code's console, or of its own. */
export type OutputLine = { by: 'code'; line: TraceLine } | { by: 'workerd'; message: string };

const OUR_PLACES = new RegExp(
  `\\n *(?:at|imported from) (?:[^\\n]*\\()?"?(?:${[FILES.main, FILES.prelude, FILES.wrapper].join('|').replaceAll('.', '\\.')})[^\\n]*`,
  'g',
);

const LEVELS: readonly string[] = ['debug', 'info', 'log', 'warn', 'error'];

/**
 * Reads a line of workerd's structured log. A line of the code has a number for its time and no source; workerd's own have
 * a source, and the code can write none that has: all it prints arrives as the text of a message. What is no JSON comes
 * from V8 or the allocator.
 *
 * @param now for lines printed while the module loads, which have no time
 */
export function readOutputLine(text: string, now: Date): OutputLine {
  const { timestamp, level, message, source } = parsed(text);
  if (typeof message !== 'string') return { by: 'workerd', message: text };
  if (typeof timestamp !== 'number' || source !== undefined) return { by: 'workerd', message };
  const at = timestamp > 0 ? timestamp : now.getTime();
  return { by: 'code', line: { at, level: levelOf(level), message } };
}

/** The level of a console line; what is none counts as `log`. */
export function levelOf(level: unknown): TraceLine['level'] {
  return LEVELS.includes(level as string) ? (level as TraceLine['level']) : 'log';
}

function parsed(text: string): Record<string, unknown> {
  if (!text.startsWith('{')) return {};
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Whether workerd, V8 or its allocator says that there was no memory left. */
export function saysOutOfMemory(message: string): boolean {
  return /heap out of memory|Reached heap limit|out of memory|std::bad_alloc|OOM error in V8|Cannot allocate memory/i.test(
    message,
  );
}

/**
 * What the author of a program may read of a line of workerd's own: the error of the code, with its place, and nothing of
 * the inside of workerd or of this host. Null for a line that says nothing of the code.
 */
export function forAuthor(message: string): string | null {
  const found =
    /^service program: (?:Uncaught )?([^]+)$/.exec(message)?.[1] ?? /remote\.jsg\.([^]+)$/.exec(message)?.[1];
  return found === undefined ? null : withoutOurs(found.replace(/\n {2}(at|imported from) /g, '\n    $1 ')).trim();
}

/** A stack without the places of what is wrapped around the code. */
export function withoutOurs(stack: string): string {
  return stack.replace(OUR_PLACES, '');
}
