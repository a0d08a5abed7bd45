import { describe, expect, it } from '@jest/globals';
import { ANONYMOUS, grantLevels, keyLevels, type Action, type Caller, type Target } from './access.types.js';
import { decide, isWithin, parseScope } from './may.js';

const ACTIONS: Action[] = ['discover', ...keyLevels, 'own'];

/** What each level of a key covers, written out. */
const COVERED: Record<(typeof keyLevels)[number], Action[]> = {
  read: ['discover', 'read'],
  call: ['discover', 'read', 'call'],
  publish: ['discover', 'read', 'publish'],
  manage: ['discover', 'read', 'call', 'publish', 'manage', 'own'],
};

/** What an account may with a target, by its relation to it, written out. */
const ALLOWED: Record<string, Action[]> = {
  owner: ['discover', 'read', 'call', 'publish', 'manage', 'own'],
  manage: ['discover', 'read', 'call', 'publish', 'manage'],
  call: ['discover', 'call'],
  public: ['discover', 'call'],
  stranger: [],
};

/** A generator of numbers below a bound, the same in each run. */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

const key = (scopes: string[] | null, accountId = 'me'): Caller => ({
  accountId,
  keyId: 'k',
  isOperator: false,
  scopes: scopes?.map((scope) => parseScope(scope)!) ?? null,
});

describe('may', () => {
  it('agrees with the written tables in 10,000 generated cases', () => {
    const below = numbers(7);
    const one = <T>(values: readonly T[]): T => values[below(values.length)];
    const seen = { yes: 0, scope: 0, no: 0 };
    for (let n = 0; n < 10_000; n += 1) {
      const namespaces = ['acme', 'bolt', 'core'];
      const scopes = one([null, 1, 2])
        ? Array.from({ length: 1 + below(3) }, () => one(keyLevels) + one(['', ':acme', ':bolt']))
        : null;
      const [action, namespace] = [one(ACTIONS), one(namespaces)];
      const target: Target = {
        ownerId: one(['me', 'other']),
        namespace,
        isPublic: one([true, false]),
        granted: one([null, ...grantLevels]),
      };
      const relations = [
        target.ownerId === 'me' ? 'owner' : null,
        target.granted ?? null,
        target.isPublic ? 'public' : null,
      ].filter((relation) => relation !== null);
      const isAllowed = relations.some((relation) => ALLOWED[relation].includes(action));
      const isCovered =
        scopes === null ||
        (target.isPublic && action === 'discover') ||
        scopes.some((scope) => {
          const [level, within] = scope.split(':') as [keyof typeof COVERED, string?];
          return (within === undefined || within === namespace) && COVERED[level].includes(action);
        });
      const decision = decide(key(scopes), action, target);
      expect([scopes, action, target, decision]).toEqual([
        scopes,
        action,
        target,
        isAllowed ? (isCovered ? 'yes' : 'scope') : 'no',
      ]);
      seen[decision] += 1;
    }
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(500);
  });

  it('lets a caller without a key find and call public things only', () => {
    for (const action of ACTIONS) {
      const target = { ownerId: 'other', namespace: 'acme' };
      expect(decide(ANONYMOUS, action, target)).toBe('no');
      expect(decide(ANONYMOUS, action, { ...target, isPublic: true })).toBe(
        ALLOWED.public.includes(action) ? 'yes' : 'no',
      );
    }
  });
});

describe('a scope', () => {
  it.each(['', 'Read', 'own', 'discover', 'call:', 'call:a:b', 'call:No', ':acme', 'constructor'])(
    '%p is none',
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
