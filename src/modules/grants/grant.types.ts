import type { GrantLevel } from '../auth/access.types.js';

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
