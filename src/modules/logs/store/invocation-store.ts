import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { codeOf } from '../../../platform/database/postgres-errors.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { CallEvents } from '../call.events.js';
import type { ConnectionCall, Invocation } from '../invocation.types.js';
import { DAY_MS, dayOf, dayOfId } from './invocation-days.js';
import { InvocationsRepository, SEARCH_CHARS_MAX } from './invocations.repository.js';
import { PartitionsRepository } from './partitions.repository.js';

/** SQLSTATE of a row without a partition. */
const NO_PARTITION = '23514';

/** SQLSTATEs of invalid values, which would fail again. 54: exceeds a limit of Postgres. */
const BAD_VALUE = /^(22|23|54)/;

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/**
 * Bytes of a row and its index entries without its strings: of a server's view, and of a connection's, which is JSON.
 */
const ROW_BYTES = 300;
const CALL_BYTES = 700;

/** Bytes of a line or an exception without its message. */
const ENTRY_BYTES = 60;

export interface WriteResult {
  /** Number of all parts, and of those whose id and owner can be stored. */
  all: number;
  storable: number;
  /** The storable parts of accounts that can still write today. */
  valid: (Invocation | ConnectionCall)[];
  /** Number of valid parts that Postgres rejected. */
  rejected: number;
}

/** Writes invocations in batches. Rows that cannot be stored are skipped, counted and logged; the others are written. */
@Injectable()
export class InvocationStore {
  private readonly logger = new Logger('logs');
  private written = 0;
  /**
   * Rows that could not be stored since the process started: the day of their id is out of range, or Postgres rejected
   * them.
   */
  refused = 0;
  private overShare = 0;

  constructor(
    private readonly invocationsRepository: InvocationsRepository,
    private readonly partitionsRepository: PartitionsRepository,
    private readonly env: Env,
    private readonly callEvents: CallEvents,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_log_rows_written_total',
      'Rows of runtime logs written by this process, repetitions included.',
      () => this.written,
    );
    metrics.counter(
      'slipway_log_rows_refused_total',
      'Rows of runtime logs that cannot be kept: too old, or refused by the database.',
      () => this.refused,
    );
    metrics.counter(
      'slipway_log_rows_over_share_total',
      'Rows of logs that were left out because their account has reached its logBytesPerDay.',
      () => this.overShare,
    );
  }

  /**
   * Writes parts of servers' views in one statement.
   *
   * @param job a random number: a batch that is written again with the same number changes nothing
   * @throws the error of Postgres if no single row causes it
   */
  async store(parts: Invocation[], job: number): Promise<void> {
    this.conclude(await this.write(parts, job));
  }

  /** Writes parts as `store` does, in a transaction of the caller, who calls `conclude` after the commit. */
  async write(parts: Invocation[], job: number, tx?: EntityManager): Promise<WriteResult> {
    const ownerOf = ({ serverId }: Invocation) => serverId;
    const storable = this.storable(parts, ownerOf);
    const valid = await this.withinShare('servers', storable, ownerOf, tx);
    // In a transaction, a savepoint keeps earlier rows if one is rejected.
    const insert = (rows: Invocation[]) =>
      tx
        ? tx.transaction((savepoint) => this.invocationsRepository.insert(rows, job, savepoint))
        : this.invocationsRepository.insert(rows, job);
    const rejected = await this.insertValid(valid, insert, tx);
    if (valid.length < storable.length) {
      const validParts = new Set(valid);
      const leftOut = storable.filter((part) => part.method != null && !validParts.has(part));
      await this.invocationsRepository.countLeftOut(leftOut, tx);
    }
    return { all: parts.length, storable: storable.length, valid, rejected };
  }

  /** Writes parts of connections' views in one statement. Can be repeated. @throws as `store` */
  async keepCalls(calls: ConnectionCall[]): Promise<void> {
    const ownerOf = ({ connectionId }: ConnectionCall) => connectionId;
    const storable = this.storable(calls, ownerOf);
    const valid = await this.withinShare('connections', storable, ownerOf);
    const rejected = await this.insertValid(valid, (rows) => this.invocationsRepository.insertCalls(rows));
    this.conclude({ all: calls.length, storable: storable.length, valid, rejected });
  }

  /** Counts and reports the result of a write. */
  conclude({ all, storable, valid, rejected }: WriteResult): void {
    this.written += valid.length - rejected;
    this.overShare += storable - valid.length;
    const refused = all - storable + rejected;
    this.refused += refused;
    if (refused > 0) this.logger.warn(`${refused} invocations cannot be stored`);
    this.callEvents.emit('written', valid);
  }

  /** Returns one row per id, sorted by id: two batches that change the same rows in another order would deadlock. */
  private storable<Part extends { id: string }>(parts: Part[], ownerOf: (part: Part) => string): Part[] {
    const today = Date.parse(dayOf(Date.now()));
    const oldest = dayOf(today - this.env.logRetentionDays * DAY_MS);
    // Clocks of machines differ, which near midnight means another day.
    const newest = dayOf(today + DAY_MS);
    const isStorable = (part: Part) => {
      if (!UUID_V7.test(part.id) || !UUID.test(ownerOf(part))) return false;
      const day = dayOfId(part.id);
      return day > oldest && day <= newest;
    };
    const byId = new Map<string, Part>();
    for (const part of parts) if (isStorable(part)) byId.set(part.id, part);
    return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Returns the parts of accounts that can still write today. */
  private async withinShare<Part extends Invocation | ConnectionCall>(
    table: 'servers' | 'connections',
    parts: Part[],
    ownerOf: (part: Part) => string,
    tx?: EntityManager,
  ): Promise<Part[]> {
    if (parts.length === 0) return parts;
    const bytes = new Map<string, number>();
    for (const part of parts) {
      const owner = ownerOf(part);
      bytes.set(owner, (bytes.get(owner) ?? 0) + sizeOf(part));
    }
    const { accountLimits, sharedLogBytesPerDay } = this.env;
    const limits = { share: accountLimits.logBytesPerDay, shared: sharedLogBytesPerDay };
    const full = await this.invocationsRepository.charge(table, bytes, limits, tx);
    return full.size === 0 ? parts : parts.filter((part) => !full.has(ownerOf(part)));
  }

  /** Inserts valid rows: halves a failing batch until the rows that cause the error are alone. @returns the number of these rows */
  private async insertValid<Part extends { id: string }>(
    parts: Part[],
    insert: (parts: Part[]) => Promise<void>,
    tx?: EntityManager,
  ): Promise<number> {
    if (parts.length === 0) return 0;
    try {
      await this.insert(parts, insert, tx);
      return 0;
    } catch (error) {
      if (!BAD_VALUE.test(codeOf(error) ?? '')) throw error;
      if (parts.length === 1) return 1;
      const middle = parts.length >> 1;
      const rejected = await this.insertValid(parts.slice(0, middle), insert, tx);
      return rejected + (await this.insertValid(parts.slice(middle), insert, tx));
    }
  }

  private async insert<Part extends { id: string }>(
    parts: Part[],
    insert: (parts: Part[]) => Promise<void>,
    tx?: EntityManager,
  ): Promise<void> {
    try {
      await insert(parts);
    } catch (error) {
      if (codeOf(error) !== NO_PARTITION) throw error;
      for (const day of new Set(parts.map(({ id }) => dayOfId(id)))) await this.partitionsRepository.make(day, tx);
      await insert(parts);
    }
  }
}

/** Returns the approximate bytes of a row and its index entries. */
function sizeOf(part: Invocation | ConnectionCall): number {
  const { method, url, rpcMethod, toolName, lines, exceptions } = part;
  const isServers = 'serverId' in part;
  const row = method == null ? 0 : isServers ? ROW_BYTES : CALL_BYTES;
  let size = row + ENTRY_BYTES * (lines.length + exceptions.length);
  size += bytesOf(method) + bytesOf(url) + bytesOf(rpcMethod) + bytesOf(toolName);
  const printed = messageBytesOf(part);
  if (!isServers) return size + printed;
  // Search stores a server's messages again, with an index of about the same size.
  const searched = 2 * Math.min(printed, SEARCH_CHARS_MAX);
  return size + printed + searched + bytesOf(part.payload?.arguments) + bytesOf(part.payload?.result);
}

function messageBytesOf({ lines, exceptions }: Invocation | ConnectionCall): number {
  let bytes = 0;
  for (const { message } of lines) bytes += Buffer.byteLength(message);
  for (const { message } of exceptions) bytes += Buffer.byteLength(message);
  return bytes;
}

function bytesOf(text: string | null | undefined): number {
  return text == null ? 0 : Buffer.byteLength(text);
}
