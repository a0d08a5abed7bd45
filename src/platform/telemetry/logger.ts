import { hostname } from 'node:os';
import { types } from 'node:util';
import type { LoggerService } from '@nestjs/common';
import { pino, type Logger as Pino } from 'pino';
import type Pretty from 'pino-pretty';
import type { Env } from '../../config/env.js';
import { VERSION } from '../../config/version.js';
import { lazyRequire } from '../lazy-require.js';
import { tracing } from './tracing.js';

const pretty = lazyRequire<typeof Pretty>('pino-pretty');

/** Secrets that must never reach a log. */
const patterns: readonly [RegExp, string][] = [
  [/(\/setup\/)[A-Za-z0-9_-]{20,}/g, '$1[redacted]'],
  [/(\bsignature=)[A-Za-z0-9_-]{16,}/g, '$1[redacted]'],
  [/slipway_[A-Za-z0-9_-]{20,}/g, 'slipway_[redacted]'],
  [/\b(Bearer|Basic|Token)\s+[A-Za-z0-9._~+/=-]{6,}/gi, '$1 [redacted]'],
  // The pattern is limited and stops at the next beginning; otherwise each of many beginnings in a string would be
  // searched far ahead.
  [/(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s/:@"\\]{0,256}):(?:(?!:\/\/)[^\s@"\\]){0,1024}@/gi, '$1:[redacted]@'],
  [/((?:authorization|cookie|x-api-key|api[-_]?key|password|secret|token)\\*"\s*:\s*\\*")[^"\\]*/gi, '$1[redacted]'],
];

/**
 * Returns safe fields of an error. Others can contain secrets: a failed query has its values and rows, a failed request the data of
 * the other side.
 */
function errorForLog(error: unknown): unknown {
  if (!types.isNativeError(error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code, query } = error as Error & { code?: unknown; query?: unknown };
  return { type, message, stack, code, query };
}

/** Returns the form of the log: lines of JSON except in a terminal. */
export function logFormatOf({ logFormat }: Pick<Env, 'logFormat'>): 'pretty' | 'json' {
  return logFormat ?? (process.stdout.isTTY ? 'pretty' : 'json');
}

export function processFields({ roles }: Pick<Env, 'roles'>) {
  return { role: roles.join(','), host: hostname(), version: VERSION };
}

/**
 * Returns the process' logger: readable lines in a terminal, JSON otherwise; credentials are blanked in both. JSON
 * lines name the process, for stores that collect those of several.
 */
export function createPino(env: Pick<Env, 'logLevel' | 'logFormat' | 'roles'> & Partial<Pick<Env, 'worker'>>): Pino {
  const format = logFormatOf(env);
  const stream =
    format === 'pretty'
      ? pretty()({
          colorize: process.stdout.isTTY,
          ignore: 'pid,hostname,context,worker',
          messageFormat: '{if worker}worker {worker} {end}{if context}{context}: {end}{msg}',
          translateTime: 'HH:MM:ss',
          sync: true,
        })
      : process.stdout;
  const worker = env.worker?.number;
  return pino(
    {
      level: env.logLevel,
      base: format === 'json' ? { ...processFields(env), worker } : { worker },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorForLog },
      mixin: () => ({ traceId: tracing()?.traceId() }),
      hooks: { streamWrite: redact },
    },
    stream,
  );
}

/** Contexts of Nest's own start messages, which only contributors need. */
const nestContexts = new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication']);

const REPEAT_MS = 60_000;

/** Above this number, different warnings are logged without a count. */
const COUNTED_MAX = 1_000;

/** Makes Nest and every `new Logger('context')` write through pino. A message is a string, or fields with `msg`. */
export class PinoLoggerService implements LoggerService {
  private readonly repeats = new Map<string, number>();

  constructor(private readonly pino: Pino) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write(nestContexts.has(rest[rest.length - 1] as string) ? 'trace' : 'info', message, rest);
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  /** Writes a line. Nest appends the context last, for errors after a stack. */
  private write(level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal', message: unknown, rest: unknown[]) {
    if (!this.pino.isLevelEnabled(level)) return;
    const context = rest.pop();
    const stack = rest.find((part): part is string => typeof part === 'string');
    const fields = typeof message === 'object' && message !== null ? message : { msg: String(message) };
    const entry = { context, ...(stack === undefined ? {} : { stack }), ...fields };
    if (level !== 'warn') return this.pino[level](entry);
    // A repeated warning is logged at most once a minute: `repeats` is the number since the last record. Warnings that
    // differ only in numbers, request ids, details and errors are treated as equal.
    const isKept = ([name, value]: [string, unknown]) =>
      typeof value === 'string' && name !== 'requestId' && name !== 'detail';
    const strings = Object.entries(entry).filter(isKept);
    const key = JSON.stringify(strings).replace(/\b\d+\b/g, '#');
    const repeats = this.repeats.get(key);
    if (repeats !== undefined) return void this.repeats.set(key, repeats + 1);
    this.pino.warn(entry);
    if (this.repeats.size < COUNTED_MAX) this.count(key, entry);
  }

  private count(key: string, entry: object): void {
    this.repeats.set(key, 0);
    setTimeout(() => {
      const repeats = this.repeats.get(key) ?? 0;
      this.repeats.delete(key);
      if (repeats === 0) return;
      this.pino.warn({ ...entry, repeats });
      this.count(key, entry);
    }, REPEAT_MS).unref();
  }
}

/**
 * Matches every string in which one of {@link patterns} has a match, so that most strings are searched once instead of
 * six times.
 */
const SUSPICIOUS =
  /\/setup\/|signature=|slipway_|bearer|basic|token|:\/\/|authorization|cookie|api[-_]?key|password|secret/i;

/** Redacts known forms of secrets, as a last line of defense: nothing should log a secret at all. */
export function redact(line: string): string {
  if (!SUSPICIOUS.test(line)) return line;
  return patterns.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}
