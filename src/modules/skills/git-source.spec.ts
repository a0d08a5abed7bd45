import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startRepositoryHost, type RepositoryHost } from '../../../test/support/releases/repository-host.js';
import { zipOf } from '../../../test/support/zips.js';
import { AddressPolicy, parseEgressAllow } from '../../platform/egress/address-policy.js';
import { Egress } from '../../platform/egress/egress.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { GitArchives, parseGitUrl } from './git-source.js';

function read(url: string) {
  const { archives, folder } = parseGitUrl(url);
  return { archives: archives.map(({ href }) => href), folder };
}

describe('parseGitUrl', () => {
  it.each([
    ['https://github.com/acme/skills', 'https://github.com/acme/skills/archive/HEAD.zip', ''],
    ['https://github.com/acme/skills.git', 'https://github.com/acme/skills/archive/HEAD.zip', ''],
    ['https://github.com/acme/skills/', 'https://github.com/acme/skills/archive/HEAD.zip', ''],
    ['https://github.com/acme/skills/tree/v1.2', 'https://github.com/acme/skills/archive/v1.2.zip', ''],
    ['https://github.com/acme/s/tree/main/.claude/pdf/', 'https://github.com/acme/s/archive/main.zip', '.claude/pdf'],
    ['https://github.com/acme/s/blob/main/a%20b/SKILL.md#L1', 'https://github.com/acme/s/archive/main.zip', 'a b'],
    ['https://github.com/acme/s/blob/main/SKILL.md', 'https://github.com/acme/s/archive/main.zip', ''],
    ['https://gitlab.com/a/b/c', 'https://gitlab.com/a/b/c/-/archive/HEAD/repository.zip', ''],
    ['https://gitlab.com/a/b/-/tree/main/x/y', 'https://gitlab.com/a/b/-/archive/main/repository.zip', 'x/y'],
    ['https://git.acme.dev/a/b/-/tree/main/x', 'https://git.acme.dev/a/b/-/archive/main/repository.zip', 'x'],
    ['https://bitbucket.org/a/b', 'https://bitbucket.org/a/b/get/HEAD.zip', ''],
    ['https://bitbucket.org/a/b/src/main/x', 'https://bitbucket.org/a/b/get/main.zip', 'x'],
    ['https://codeberg.org/a/b/src/branch/main/x', 'https://codeberg.org/a/b/archive/main.zip', 'x'],
    ['http://git.acme.dev:3000/a/b/src/tag/v1/x', 'http://git.acme.dev:3000/a/b/archive/v1.zip', 'x'],
  ])('%s is downloaded from %s', (url, archive, folder) => {
    expect(read(url)).toEqual({ archives: [archive], folder });
  });

  it('tries both archive formats on an unknown host', () => {
    expect(read('https://git.acme.dev/team/skills.git')).toEqual({
      archives: [
        'https://git.acme.dev/team/skills/archive/HEAD.zip',
        'https://git.acme.dev/team/skills/-/archive/HEAD/repository.zip',
      ],
      folder: '',
    });
  });

  it('returns the same key for each spelling of a folder', () => {
    const key = (url: string) => parseGitUrl(url).key;
    expect(key('https://GitHub.com/Acme/Skills.git')).toBe(key('https://github.com/acme/skills/'));
    expect(key('https://github.com/acme/skills/tree/main/pdf')).toBe(
      key('https://github.com/acme/skills/blob/v2/pdf/SKILL.md'),
    );
    expect(key('https://github.com/acme/skills/tree/main/pdf')).not.toBe(key('https://github.com/acme/skills'));
    expect(key('https://github.com/acme/skills')).not.toBe(key('https://gitlab.com/acme/skills'));
  });

  it.each([
    ['nothing', ''],
    ['no URL', 'acme/skills'],
    ['an address for ssh', 'git@github.com:acme/skills.git'],
    ['another scheme', 'ssh://git@github.com/acme/skills'],
    ['a file', 'file:///etc/passwd'],
    ['a password', 'https://user:token@github.com/acme/skills'],
    ['a query', 'https://github.com/acme/skills?token=1'],
    ['a host alone', 'https://github.com/'],
    ['an empty segment', 'https://github.com//skills'],
    ['a broken encoding', 'https://github.com/a/b/tree/main/%E0%A4'],
    ['too long a path', `https://github.com/a/${'ä'.repeat(400)}`],
  ])('refuses %s', (_what, url) => {
    expect(() => parseGitUrl(url)).toThrow(InvalidInputError);
  });
});

describe('GitArchives', () => {
  const archives = new GitArchives(new Egress(new AddressPolicy(parseEgressAllow('127.0.0.1'))));
  let host: RepositoryHost;

  beforeAll(async () => {
    host = await startRepositoryHost();
  });
  afterAll(() => host.close());

  /** The URLs of two archives, of which the host has the second. */
  async function pair(name: string): Promise<[URL, URL]> {
    const [first, second] = [`/${name}/first.zip`, `/${name}/second.zip`];
    host.serve(second, await zipOf({ 'SKILL.md': name }));
    return [new URL(first, host.url), new URL(second, host.url)];
  }

  it('fetches the next archive where one does not exist', async () => {
    const [first, second] = await pair('absent');
    expect((await archives.fetch([first, second])).subarray(0, 2).toString()).toBe('PK');
    await expect(archives.fetch([first])).rejects.toMatchObject({ code: 'repository_not_found' });
  });

  it('fetches no other archive after any other failure', async () => {
    const [first, second] = await pair('down');
    host.serve(first.pathname, (_, response) => response.writeHead(503).end());
    await expect(archives.fetch([first, second])).rejects.toMatchObject({ code: 'upstream_error' });
    expect(host.asked).not.toContain(second.pathname);
  });

  it('has one time limit for all archives', async () => {
    const [first, second] = await pair('slow');
    const limit = new AbortController();
    host.serve(second.pathname, () => limit.abort(new DOMException('over', 'TimeoutError')));
    await expect(archives.fetch([first, second], limit.signal)).rejects.toMatchObject({
      message: expect.stringContaining('no complete response within 45 s'),
    });
  });
});
