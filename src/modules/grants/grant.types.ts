import type { GrantLevel } from '../auth/access.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when a server or a connection was granted to an account, or a grant was changed or withdrawn. */
    'grants.changed': { serverId: string } | { connectionId: string };
  }
}

/** What can be granted. */
export const targetKinds = ['server', 'connection'] as const;
export type TargetKind = (typeof targetKinds)[number];

/** A server or a connection, by the id of its row. */
export interface GrantTarget {
  kind: TargetKind;
  id: string;
}

/** A grant, with the account that it names. */
export interface GrantRow {
  id: string;
  accountId: string;
  accountName: string;
  level: GrantLevel;
  createdAt: Date;
}

/** A grant for an account, with what it is of; the account of the row is the owner. */
export interface GrantedRow extends GrantRow {
  namespace: string;
  /** Null for a connection. */
  serverName: string | null;
  /** Null for a server. */
  connectionId: string | null;
}
