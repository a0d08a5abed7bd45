import { describe, expect, it } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv, ISOLATION_MEASURES } from '../../config/env.js';
import { Sandbox } from './sandbox.js';
import { probeIsolation, wrappers, type Run } from './isolation-checks.js';

const ROOT = 0;
const SOMEBODY = 1_000;

/** A host on which these commands fail with these messages; others succeed. */
const hostWithout =
  (...failing: [RegExp, string][]): Run =>
  (file, args) => {
    const command = [file, ...args].join(' ');
    const [, words] = failing.find(([pattern]) => pattern.test(command)) ?? [];
    return words === undefined ? Promise.resolve() : Promise.reject(new Error(words));
  };

const sandboxOf = (run: Run, uid: number, level?: string) =>
  new Sandbox(loadEnv(level === undefined ? {} : { HOSTING_ISOLATION: level }), () => probeIsolation(run, uid));

const root = { tree: { dir: '/tree', mounts: '/tree/mounts' }, workDir: '/bundle' };
const alone = (user: number) => ({ user, dataBytes: 1, network: 'own', alone: true, root: null });

describe('isolation of hosted code', () => {
  it('is complete for root on a host that has the tools', async () => {
    const sandbox = sandboxOf(hostWithout(), ROOT);
    expect((await sandbox.describeIsolation()).level).toBe('isolated');
    expect([await sandbox.whyNot(), await sandbox.whyNoBundles()]).toEqual([null, null]);
  });

  verifies('runtime:isolation:refused', 'is refused without the tools, until the operator says container', async () => {
    const bare = hostWithout([/./, 'there is no such tool']);
    const sandbox = sandboxOf(bare, SOMEBODY);
    expect(await sandbox.describeIsolation()).toEqual({
      level: 'container',
      measures: Object.fromEntries(ISOLATION_MEASURES.map((measure) => [measure, 'there is no such tool'])),
    });
    expect(await sandbox.whyNot()).toBe(
      'Hosted code would not be isolated on this host: it cannot build memory-limit (there is no such tool), ' +
        'dies-with-service (there is no such tool). Let the service do that, or set HOSTING_ISOLATION=container if you ' +
        'trust whoever uploads code.',
    );
    expect(await sandboxOf(bare, SOMEBODY, 'container').whyNot()).toBeNull();
  });

  describe('in a container that refuses namespaces to accounts other than root', () => {
    const container = hostWithout([/^unshare/, 'unshare failed: Operation not permitted']);

    verifies('runtime:isolation:level', 'is at the level container, unless isolated is required', async () => {
      expect((await sandboxOf(container, SOMEBODY).describeIsolation()).level).toBe('container');
      expect(await sandboxOf(container, SOMEBODY).whyNot()).toBeNull();
      expect(await sandboxOf(container, SOMEBODY, 'isolated').whyNot()).toContain(
        'own-network (unshare failed: Operation not permitted)',
      );
      const command = wrappers(await probeIsolation(container, SOMEBODY), { ...alone(7), root }).join(' ');
      expect(command).toBe(
        'prlimit --data=1 --core=0 --nofile=4096 --fsize=1073741824 -- setpriv --no-new-privs --pdeathsig=KILL -- nice -n 5',
      );
    });

    verifies('runtime:isolation:bundles', 'runs no bundles, and says why', async () => {
      expect(await sandboxOf(container, SOMEBODY).whyNoBundles()).toMatch(
        /^Bundles run with complete isolation only, and this host cannot build own-user \(unshare failed/,
      );
      expect(await sandboxOf(hostWithout(), ROOT, 'container').whyNoBundles()).toContain(
        'own-files (HOSTING_ISOLATION is container)',
      );
    });
  });

  it('uses the account nobody for all where a container has no more accounts', async () => {
    const many = await probeIsolation(hostWithout(), ROOT);
    const mapped = await probeIsolation(hostWithout([/reuid=19/, 'Invalid argument']), ROOT);
    expect([many.hasManyUsers, mapped.hasManyUsers, mapped.missing['own-user']]).toEqual([true, false, null]);
  });

  it('wraps a program from the outside in: memory, network, account, and last the end with the service', async () => {
    const isolation = await probeIsolation(hostWithout(), ROOT);
    const wanted = { ...alone(1_900_000_007), dataBytes: 805_306_368, alone: false };
    expect(wrappers(isolation, wanted).join(' ')).toBe(
      'prlimit --data=805306368 --core=0 --nofile=4096 --fsize=1073741824 --nproc=1024 -- unshare --net --ipc --uts -- ' +
        'setpriv --reuid=1900000007 --regid=1900000007 --clear-groups --no-new-privs --bounding-set=-all ' +
        '--inh-caps=-all --pdeathsig=KILL -- nice -n 5',
    );
    expect(wrappers(isolation, { ...wanted, network: '/proc/self/fd/3' }).join(' ')).toContain(
      'nsenter --net=/proc/self/fd/3 -- unshare --ipc --uts --',
    );
  });

  it('stops a bundle with the service from both sides: the outer process and the first inner one', async () => {
    const isolation = await probeIsolation(hostWithout(), ROOT);
    const words = wrappers(isolation, { ...alone(7), root });
    expect(words.slice(0, 3)).toEqual(['setpriv', '--pdeathsig=KILL', '--']);
    expect(words.join(' ')).toContain('unshare --net --ipc --uts --pid --fork --kill-child --mount -- sh -c');
    expect(words.filter((word) => word === '--pdeathsig=KILL')).toHaveLength(2);
    expect(words).toEqual(expect.arrayContaining(['/tree/mounts', '/tree', '/bundle']));
    const noMounts = await probeIsolation(hostWithout([/pivot_root/, 'not permitted']), ROOT);
    expect(wrappers(noMounts, { ...alone(7), root }).join(' ')).toContain('--kill-child --mount-proc -- sh -c');
    const noProcesses = await probeIsolation(hostWithout([/--pid/, 'not permitted']), ROOT);
    expect(noProcesses.missing['own-files']).toBe('not permitted');
    expect(wrappers(noProcesses, { ...alone(7), root })).not.toContain('sh');
  });

  it('has independent parts: a host that cannot stop a program with the service still gives it an account', async () => {
    const isolation = await probeIsolation(hostWithout([/pdeathsig/, 'unrecognized option']), ROOT);
    const command = wrappers(isolation, { ...alone(7), alone: false }).join(' ');
    expect([command.includes('--reuid=7'), command.includes('pdeathsig')]).toEqual([true, false]);
  });

  it('uses a user namespace where the service is not root', async () => {
    const isolation = await probeIsolation(hostWithout(), SOMEBODY);
    const command = wrappers(isolation, { ...alone(7), alone: false }).join(' ');
    expect(command).toContain(
      'unshare --user --map-root-user --net --ipc --uts -- setpriv --no-new-privs --bounding-set=-all',
    );
    expect(command).not.toContain('reuid');
  });

  it('is really tried on this host, with a result in every case', async () => {
    const { missing } = await probeIsolation();
    expect(Object.keys(missing)).toHaveLength(ISOLATION_MEASURES.length);
    const odd = await probeIsolation((file) => Promise.reject(new Error(file)));
    expect(odd.missing['own-network']).toBe('unshare');
  });
});
