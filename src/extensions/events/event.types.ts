type Kind =
  | 'account'
  | 'limit'
  | 'key'
  | 'password'
  | 'session'
  | 'login'
  | 'member'
  | 'invitation'
  | 'grant'
  | 'namespace'
  | 'server'
  | 'runtime'
  | 'secret'
  | 'release'
  | 'connection';

/** Name of an event: a change that somebody made, something that happened by itself, or `call.finished`. */
export type EventName =
  | `${Kind}.${'created' | 'changed' | 'deleted'}`
  | 'release.finished'
  | 'connection.state'
  | 'contract.changed'
  | 'call.finished';

/**
 * A row of the record of changes.
 *
 * `release.finished`: `after` is `{ serverId, number, status }`. `connection.state`: `before` and `after` are
 * `{ state, reason }`. `contract.changed`: the tools of a server are others than before; `after` is
 * `{ releaseId, summary, changeCount, foundBy }`.
 */
export interface ChangeEvent {
  /** A growing number, the same in each attempt. */
  id: string;
  name: Exclude<EventName, 'call.finished'>;
  at: Date;
  /** The account that owns the target. */
  accountId: string;
  /** The account that made the change; null for an automatic change. */
  actorId: string | null;
  target: { id: string; name: string };
  /** The values that changed, without secrets; null for a new target. */
  before: Record<string, unknown> | null;
  /** Null for a deleted target. */
  after: Record<string, unknown> | null;
}

/** A call of a tool whose row in the log is written. */
export interface CallEvent {
  /** Id of the invocation, the same in the logs. */
  id: string;
  name: 'call.finished';
  /** Time in milliseconds since 1970. */
  at: number;
  /** A call of a registry server through a connection has two events: one for each row of the log. */
  target: { kind: 'connection' | 'server'; id: string };
  tool: string | null;
  outcome: string | null;
  /** Id of the account that called; null if unknown. */
  accountId: string | null;
}
