import type { AsGrant } from './as-grant.entity.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when what a person allowed a client has ended: its tokens and streams end. */
    'authorization-server.grants-ended': { grantIds: string[] };
  }
}

/** What a person allowed a client, as lists show it. */
export type ShownGrant = Pick<
  AsGrant,
  'id' | 'clientName' | 'clientHost' | 'redirectKey' | 'address' | 'resource' | 'createdAt' | 'lastUsedAt'
> & {
  /** The name of the connection, namespace or server. */
  title: string;
};

/** Scope of every access token: the MCP methods of one endpoint. */
export const MCP_SCOPE = 'mcp';

/** The paths that clients call. Those of MCP 2025-03-26 know them without metadata. */
export const paths = {
  authorize: '/authorize',
  token: '/token',
  register: '/register',
  revoke: '/revoke',
  jwks: '/jwks',
} as const;
