/**
 * Skills from repositories: parses the browser URL of a repository or of a folder in one, and fetches the repository as
 * a zip over HTTPS, without git.
 *
 * An unknown host is recognised by its path; otherwise both Gitea's and GitLab's archive are tried. `key` is the same
 * for every spelling and branch, so that one folder is one skill.
 *
 * The egress policy applies at every step, with 5 redirects, 45 s in all and 25 MB. Fails: 400 for the URL, 404 for a
 * repository that does not exist or is private (hosts do not distinguish them), 502 for a host that is down or does not
 * return a zip, 413 above the size.
 */
import { Injectable } from '@nestjs/common';
import { DomainError, InvalidInputError, TooLargeError } from '../../platform/errors/domain-error.js';
import { Egress } from '../../platform/egress/egress.js';
import { discard, follow, readWithin, RedirectRefusedError } from '../../platform/egress/follow.js';
import { parseUrl } from '../../config/parse-url.js';
import { ARCHIVE_BYTES_MAX } from './skill-package.js';
import { SkillPublishError } from './skills.errors.js';

/** Maximum number of redirects; GitHub redirects once, to codeload.github.com. */
const REDIRECTS_MAX = 5;

/** Time limit of a fetch: published clients repeat a request after 60 s. */
const FETCH_MS_MAX = 45_000;

/** Signatures with which a zip can begin: a file, or the end of an empty one. */
const ZIP_STARTS = ['PK\x03\x04', 'PK\x05\x06'];

const unavailable = (message: string, detail?: unknown) =>
  new SkillPublishError('upstream', 'upstream_error', message, detail);

@Injectable()
export class GitArchives {
  constructor(private readonly egress: Egress) {}

  /** Fetches the first URL that exists. @throws EgressRefusedError, SkillPublishError, TooLargeError */
  async fetch([archive, ...fallbacks]: [URL, ...URL[]], signal = AbortSignal.timeout(FETCH_MS_MAX)): Promise<Buffer> {
    const headers = { accept: 'application/zip, */*', 'accept-encoding': 'identity' };
    const options = { headers, signal, redirectsMax: REDIRECTS_MAX };
    try {
      const { url, answer } = await follow(this.egress, archive, options);
      if (answer.statusCode === 200) {
        const bytes = await readWithin(answer.body, ARCHIVE_BYTES_MAX);
        if (bytes === null) {
          throw new TooLargeError(`The repository is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MB as a zip`);
        }
        if (ZIP_STARTS.includes(bytes.toString('latin1', 0, 4))) return bytes;
        const advice = 'check the URL, and that the repository is public';
        throw unavailable(`${url.host} answered with something that is not a zip file: ${advice}`);
      }
      discard(answer.body);
      // Hosts hide a private repository behind any of these statuses.
      if ([401, 403, 404, 410].includes(answer.statusCode)) {
        throw new SkillPublishError(
          'not_found',
          'repository_not_found',
          `${url.host} answered ${answer.statusCode} for the repository: check the URL, and that the repository is public`,
        );
      }
      throw unavailable(`${url.host} answered ${answer.statusCode} for the repository: try again later`);
    } catch (error) {
      const [other, ...further] = fallbacks;
      if (other && error instanceof SkillPublishError && error.kind === 'not_found')
        return this.fetch([other, ...further], signal);
      if (error instanceof DomainError) throw error;
      if (error instanceof RedirectRefusedError) {
        throw unavailable(
          error.reason === 'too many'
            ? `${archive.host} redirects more than ${REDIRECTS_MAX} times`
            : `${error.from.host} leads to an address without TLS, which is not followed`,
        );
      }
      const { name, code } = error as NodeJS.ErrnoException;
      const reason = name === 'TimeoutError' ? `no complete response within ${FETCH_MS_MAX / 1000} s` : (code ?? name);
      throw unavailable(`The repository could not be fetched from ${archive.host}: ${reason}`, error);
    }
  }
}

/** Source of a skill. The zip has two URLs for an unknown host. */
export interface GitSource {
  gitUrl: string;
  /** Key of repository and directory, the same for every spelling and every branch. */
  key: string;
  /** Path of the directory; empty if the URL names the complete repository. */
  folder: string;
  archives: [URL, ...URL[]];
}

interface Host {
  /** The part between repository and `ref/folder` in the URL of a folder's page. */
  browse: RegExp;
  /** Path of the zip of a branch, tag or commit, relative to the repository. */
  archive: (ref: string) => string;
}

const github: Host = { browse: /\/(?:tree|blob)\//, archive: (ref) => `/archive/${ref}.zip` };
const gitlab: Host = { browse: /\/-\/(?:tree|blob)\//, archive: (ref) => `/-/archive/${ref}/repository.zip` };
const bitbucket: Host = { browse: /\/src\//, archive: (ref) => `/get/${ref}.zip` };
const gitea: Host = { browse: /\/src\/(?:branch|tag|commit)\//, archive: (ref) => `/archive/${ref}.zip` };

const hosts: ReadonlyMap<string, Host> = new Map(
  Object.entries({ 'github.com': github, 'gitlab.com': gitlab, 'bitbucket.org': bitbucket }),
);

/** Maximum length of a URL, including percent-encoding; the column is indexed. */
const URL_LENGTH_MAX = 1_000;

/** The newest commit of the default branch, for every kind of host. */
const HEAD = 'HEAD';

/** @throws InvalidInputError */
export function parseGitUrl(text: string): GitSource {
  const url = parseUrl(text.trim());
  if (!url) throw new InvalidInputError('gitUrl must be a URL such as https://github.com/owner/repository');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new InvalidInputError('gitUrl must begin with https://: other ways to reach a repository are not supported');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '') {
    throw new InvalidInputError('gitUrl is shown to everybody, so it must hold no user name, password or query');
  }
  url.hash = '';
  if (url.href.length > URL_LENGTH_MAX) {
    throw new InvalidInputError(`gitUrl must not be longer than ${URL_LENGTH_MAX} characters`);
  }
  const { hostname, pathname } = url;
  const host = hosts.get(hostname) ?? [gitlab, gitea, github].find(({ browse }) => browse.test(pathname));
  const browsed = host?.browse.exec(pathname);
  const path = pathname
    .slice(0, browsed?.index)
    .replace(/\/+$/, '')
    .replace(/\.git$/, '');
  if (!/^(\/[^/]+)+$/.test(path)) {
    throw new InvalidInputError('gitUrl must name a repository: https://host/owner/repository');
  }
  const within = browsed ? pathname.slice(browsed.index + browsed[0].length) : '';
  const [ref = HEAD, ...folders] = within.split('/').filter((part) => part !== '');
  let folder: string;
  try {
    folder = decodeURIComponent(folders.join('/')).replace(/(^|\/)SKILL\.md$/, '');
  } catch {
    throw new InvalidInputError('gitUrl holds a broken percent-encoding');
  }
  const key = `${url.host}${path} ${folder}`.toLowerCase();
  const archiveOf = ({ archive }: Host) => new URL(`${path}${archive(ref)}`, url);
  return { gitUrl: url.href, key, folder, archives: host ? [archiveOf(host)] : [archiveOf(gitea), archiveOf(gitlab)] };
}
