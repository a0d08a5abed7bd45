import { describe, expect, it } from '@jest/globals';
import {
  ANONYMOUS,
  grantLevels,
  keyLevels,
  roles,
  type Action,
  type Caller,
  type Role,
  type GuardedTarget,
} from './access.types.js';
import { randomFrom, testSeed } from '../../../test/support/seed.mjs';
import { visibilities } from '../targets/target.types.js';
import { decide, isWithin, parseScope } from './may.js';

const ACTIONS: Action[] = ['discover', ...keyLevels, 'administer', 'own'];

/** What each level of a key covers, written out. */
const COVERED: Record<(typeof keyLevels)[number], Action[]> = {
  read: ['discover', 'read'],
  call: ['discover', 'read', 'call'],
  publish: ['discover', 'read', 'publish'],
  manage: ['discover', 'read', 'call', 'publish', 'manage', 'administer', 'own'],
};

/** What an account may with a target, by its relation to it, written out. */
const ALLOWED: Record<string, Action[]> = {
  owner: ['discover', 'read', 'call', 'publish', 'manage', 'administer', 'own'],
  editor: ['discover', 'read', 'call', 'publish', 'manage', 'administer'],
  member: ['discover', 'call'],
  guest: [],
  manage: ['discover', 'read', 'call', 'publish', 'manage'],
  call: ['discover', 'call'],
  public: ['discover', 'call'],
  restricted: ['discover'],
  private: [],
  stranger: [],
};

const key = (scopes: string[] | null, memberships: [string, Role][] = []): Caller => ({
  accountId: 'me',
  keyId: 'k',
  isOperator: false,
  scopes: scopes?.map((scope) => parseScope(scope)!) ?? null,
  memberships: new Map(memberships),
});

describe('may', () => {
  it('agrees with the written tables in 10,000 generated cases', () => {
    const random = randomFrom('may');
    const below = (bound: number) => Math.floor(random() * bound);
    const one = <T>(values: readonly T[]): T => values[below(values.length)];
    const seen = { yes: 0, scope: 0, no: 0 };
    for (let n = 0; n < 10_000; n += 1) {
      const namespaces = ['acme', 'bolt', 'core'];
      const scopes = one([null, 1, 2])
        ? Array.from({ length: 1 + below(3) }, () => one(keyLevels) + one(['', ':acme', ':bolt']))
        : null;
      const [action, namespace] = [one(ACTIONS), one(namespaces)];
      const target: GuardedTarget = {
        ownerId: one(['me', 'other', 'org', 'org2']),
        namespace,
        visibility: one([undefined, ...visibilities]),
        granted: one([null, ...grantLevels]),
      };
      // An organization with members is an editor of itself.
      const memberships = (['org', 'org2', 'me'] as const).flatMap((id): [string, Role][] => {
        const role = id === 'me' ? one([null, 'editor' as const]) : one([null, ...roles]);
        return role === null ? [] : [[id, role]];
      });
      const role = memberships.find(([id]) => id === target.ownerId)?.[1];
      const relations = [
        role ?? (target.ownerId === 'me' ? 'owner' : null),
        target.granted ?? null,
        target.visibility ?? null,
      ].filter((relation) => relation !== null);
      const isAllowed = relations.some((relation) => ALLOWED[relation].includes(action));
      const isCovered =
        scopes === null ||
        (action === 'discover' && (target.visibility === 'public' || target.visibility === 'restricted')) ||
        scopes.some((scope) => {
          const [level, within] = scope.split(':') as [keyof typeof COVERED, string?];
          return (within === undefined || within === namespace) && COVERED[level].includes(action);
        });
      const decision = decide(key(scopes, memberships), action, target);
      expect([testSeed, memberships, scopes, action, target, decision]).toEqual([
        testSeed,
        memberships,
        scopes,
        action,
        target,
        isAllowed ? (isCovered ? 'yes' : 'scope') : 'no',
      ]);
      seen[decision] += 1;
    }
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(500);
  });

  it('lets a caller without a key find and call only public targets', () => {
    for (const action of ACTIONS) {
      const target = { ownerId: 'other', namespace: 'acme' };
      expect(decide(ANONYMOUS, action, target)).toBe('no');
      for (const visibility of visibilities) {
        const decision = ALLOWED[visibility].includes(action) ? 'yes' : 'no';
        expect(decide(ANONYMOUS, action, { ...target, visibility })).toBe(decision);
      }
    }
  });
});

describe('a scope', () => {
  it.each(['', 'Read', 'own', 'discover', 'call:', 'call:a:b', 'call:No', ':acme', 'constructor'])(
    'cannot be %p',
    (text) => {
      expect(parseScope(text)).toBeNull();
    },
  );
});

describe('a key that another key makes', () => {
  const within = (inner: string[] | null, outer: string[] | null) => isWithin(key(inner).scopes, key(outer).scopes);

  it('has no more rights', () => {
    expect(within(['manage'], null)).toBe(true);
    expect(within(null, ['manage'])).toBe(false);
    expect(within(['read:acme', 'call:acme'], ['call'])).toBe(true);
    expect(within(['call'], ['call:acme'])).toBe(false);
    expect(within(['publish:acme'], ['call:acme'])).toBe(false);
    expect(within(['publish:acme'], ['manage:acme'])).toBe(true);
    expect(within([], ['read'])).toBe(true);
  });
});
