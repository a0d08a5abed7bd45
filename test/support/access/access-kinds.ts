/**
 * The kinds of access that routes have in common, as rows of the access matrix (`access-matrix.ts`).
 *
 * A row has one character for each caller, in the order of `callers`. `y`: as the owner; `-`: 401; `f`: 403; `x`: 404, as
 * for what does not exist; `!`: another refusal. A module names the kind of each of its routes in
 * `test/e2e/<module>/access.ts` and writes no row itself, so that a new caller changes this file and no module.
 */

/** Who asks. `read` to `manage`: keys of the owner with this scope; `elsewhere`: one for another namespace of the owner. */
export const callers = [
  'none',
  'wrong',
  'expired',
  'revoked',
  'stranger',
  'read',
  'call',
  'publish',
  'manage',
  'elsewhere',
  'guest',
  'friend',
  'owner',
  'operator',
] as const;
export type CallerName = (typeof callers)[number];

/** The rows of a route: around a public server, and around a private one. */
export interface Kind {
  public: string;
  private: string;
}

/** A kind that does not depend on the visibility of a server. */
export const always = (row: string): Kind => ({ public: row, private: row });

/* The callers: n w e r s r c p m e g f o o
                o r x e t e a u a l u r w p
                n o p v r a l b n s e i n e
                e n i o a d l l a e s e e r   */
export const kinds = {
  /** Needs no key: pages, probes. */
  everybody: always('yyyyyyyyyyyyyy'),
  operatorOnly: always('----fffffffffy'),
  /** Reads what every account may see, or what the caller has. */
  everyKeyReads: always('----yyyyyyyyyy'),
  /** Writes what the caller has. */
  everyKeyWrites: always('----yfffyyyyyy'),
  /** Reads about a server that the caller may find. */
  everyKeyReadsOfServer: { public: '----yyyyyyyyyy', private: '----xyyyyfyyyx' },
  /** Writes what the caller has about a server that it may find. */
  everyKeyWritesOfServer: { public: '----yfffyyyyyy', private: '----xfffyfyyyx' },
  /** `account` rules: the account itself, or the operator. */
  ownAccountReads: always('----xyyyyfxxyy'),
  ownAccountWrites: always('----xfffyfxxyy'),
  /** `owner: 'namespace'`, which cannot be granted. */
  ownNamespaceReads: always('----xyyyyfxxyx'),
  ownNamespaceWrites: always('----xfffyfxxyx'),
  /** A server (`ownServerOrNone`) or a connection, also for whom its owner granted `manage`. */
  ownerReads: always('----xyyyyffyyx'),
  ownerWrites: always('----xfffyffyyx'),
  ownerPublishes: always('----xffyyffyyx'),
  /** The same without grants (`own`). */
  ownerOnly: always('----xfffyfffyx'),
} as const satisfies Record<string, Kind>;
