import type { GrantLevel } from '../auth/access.types.js';

export interface GrantTerms {
  level: GrantLevel;
  /** The only granted tools; null: everything. */
  tools: string[] | null;
  expiresAt: Date | null;
}

/** A grant. Without an account, everybody is the grantee. */
export interface GrantRow extends GrantTerms {
  id: string;
  accountId: string | null;
  accountName: string | null;
  createdAt: Date;
}

interface GrantByRow extends GrantRow {
  /** Name of the account that granted access; null after its deletion. */
  grantedBy: string | null;
}

export type ListedGrantRow = GrantByRow & LastUseRow;

/** The last use of a target by an account; null before the first. */
export interface LastUseRow {
  usedAt: Date | null;
  usedClient: string | null;
  usedKind: string | null;
  usedCredential: string | null;
}

export interface GivenGrantRow extends GrantByRow, Pick<GrantedRow, 'namespace' | 'serverName' | 'connectionId'> {
  targetId: string;
}

/** A grant for an account, with its target; the account of the row is the owner. */
export interface GrantedRow extends GrantRow {
  accountId: string;
  accountName: string;
  namespace: string;
  /** Null for a connection and a namespace. */
  serverName: string | null;
  /** Null for a server and a namespace. */
  connectionId: string | null;
}
