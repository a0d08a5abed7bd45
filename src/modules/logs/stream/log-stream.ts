import type { ServerResponse } from 'node:http';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { EventStream } from '../../../platform/http/event-stream.js';
import { ENTRIES_MAX } from '../ingest/invocation-bounds.js';
import type { InvocationQuery } from '../search/invocation-query.js';
import type { InvocationSearchRepository } from '../search/invocation-search.repository.js';
import { toInvocationDto } from '../search/runtime-logs.service.js';

/** Interval of polls, since messages are lost while the queue's store is unavailable. */
const POLL_MS = 5_000;

/** Minimum interval of queries, however busy the server is. */
const QUERY_EVERY_MS = 1_000;

/** Age up to which invocations are sent, or sent again after parts are added: longer than any call. */
const WINDOW_MS = 15 * 60_000;

const READ_AT_ONCE = 20;

export interface Followed {
  serverId: string;
  query: InvocationQuery;
  limit: number;
  /** The `Last-Event-ID` of a client that reconnects. */
  after?: string;
  check: () => Promise<void>;
}

/**
 * Streams `init` with the newest invocations, then `invocation` for each new one, and again with the same id when parts are added. A client
 * that reconnects receives the invocations since its last event.
 */
export class LogStream extends EventStream {
  /** The sent versions by invocation id. */
  private sent = new Map<string, number>();

  constructor(
    private readonly search: InvocationSearchRepository,
    readonly followed: Followed,
    response: ServerResponse,
    stallMs?: number,
  ) {
    super(response, stallMs);
  }

  protected async follow(): Promise<void> {
    const { serverId, query, limit, after } = this.followed;
    const versions = await this.versions();
    const sent = versions.filter(({ id }) => after === undefined || id <= after);
    this.sent = new Map(sent.map(({ id, version }) => [id, version]));
    const { invocations } = after === undefined ? await this.search.find(serverId, query, limit) : { invocations: [] };
    const last = after ?? invocations[0]?.id;
    await this.send('init', { invocations: invocations.map(toInvocationDto) }, last ?? '');
    if (after !== undefined) await this.sendNew();
    while (!this.isClosed) {
      await this.pause(QUERY_EVERY_MS);
      await this.nextChange(POLL_MS - QUERY_EVERY_MS);
      if (!(await this.isAllowed())) return;
      await this.sendNew();
    }
  }

  /** Sends the oldest first. */
  private async sendNew(): Promise<void> {
    const versions = await this.versions();
    const changed = versions.filter(({ id, version }) => this.sent.get(id) !== version).map(({ id }) => id);
    this.sent = new Map(versions.map(({ id, version }) => [id, version]));
    for (let end = changed.length; end > 0 && !this.isClosed; end -= READ_AT_ONCE) {
      const rows = await this.search.byIds(this.followed.serverId, changed.slice(Math.max(0, end - READ_AT_ONCE), end));
      for (const row of rows.reverse()) await this.send('invocation', toInvocationDto(row), row.id);
    }
  }

  /** Reads the versions of the newest 1,000 invocations. */
  private versions() {
    const since = new Date(Date.now() - WINDOW_MS);
    return this.search.versions(this.followed.serverId, this.followed.query, since, ENTRIES_MAX);
  }

  /** Checks access again: keys are revoked and servers change owners while a stream is open. */
  private async isAllowed(): Promise<boolean> {
    if (this.isClosed) return false;
    try {
      await this.followed.check();
      return true;
    } catch (error) {
      if (error instanceof DomainError) return false;
      throw error;
    }
  }
}
