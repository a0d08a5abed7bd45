import { types } from 'node:util';
import type { LoggerService } from '@nestjs/common';
import { pino, type Logger as Pino } from 'pino';
import pretty from 'pino-pretty';
import type { Env } from '../../config/env.js';
import { redact } from './redact.js';

/**
 * What a log may say about an error. Not its other fields: a failed query carries its values and rows, a failed request
 * what the other side sent.
 */
function errorForLog(error: unknown): unknown {
  if (!types.isNativeError(error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code, query } = error as Error & { code?: unknown; query?: unknown };
  return { type, message, stack, code, query };
}

/** The process' logger: readable lines in a terminal, JSON otherwise; credentials are blanked in both. */
export function createPino(env: Pick<Env, 'logLevel' | 'logFormat'>): Pino {
  const format = env.logFormat ?? (process.stdout.isTTY ? 'pretty' : 'json');
  const stream =
    format === 'pretty'
      ? pretty({
          colorize: process.stdout.isTTY,
          ignore: 'pid,hostname,context',
          messageFormat: '{if context}{context}: {end}{msg}',
          translateTime: 'HH:MM:ss',
          sync: true,
        })
      : process.stdout;
  return pino(
    {
      level: env.logLevel,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorForLog },
      hooks: { streamWrite: redact },
    },
    stream,
  );
}

/** What Nest itself tells at every start, of interest only to who changes modules. */
const nestContexts = new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication']);

/** Lets Nest and every `new Logger('context')` of ours write through pino. A message may be text or fields with `msg`. */
export class PinoLoggerService implements LoggerService {
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

  /** Nest appends the context as the last argument, and a stack before it for errors. */
  private write(level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal', message: unknown, rest: unknown[]) {
    if (!this.pino.isLevelEnabled(level)) return;
    const context = rest.pop();
    const stack = rest.find((part): part is string => typeof part === 'string');
    const fields = typeof message === 'object' && message !== null ? message : { msg: String(message) };
    this.pino[level]({ context, ...(stack === undefined ? {} : { stack }), ...fields });
  }
}
