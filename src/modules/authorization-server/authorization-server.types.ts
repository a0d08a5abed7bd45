import type { AsGrant } from './as-grant.entity.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when client authorizations were revoked or expired: their tokens are rejected and their streams close. */
    'authorization-server.grants-ended': { grantIds: string[] };
  }
}

export type ShownGrant = Pick<
  AsGrant,
  'id' | 'clientName' | 'clientHost' | 'redirectKey' | 'address' | 'resource' | 'createdAt' | 'lastUsedAt'
> & { title: string };

export const MCP_SCOPE = 'mcp';

/** The paths that clients call. Clients of MCP 2025-03-26 know them without metadata. */
export const paths = {
  authorize: '/authorize',
  token: '/token',
  register: '/register',
  revoke: '/revoke',
  jwks: '/jwks',
} as const;
