/**
 * Skills from repositories: reads the URL of a repository or of a folder in one, as it stands in the browser, and
 * fetches the repository as a zip over HTTPS; no git is run.
 *
 * GitHub, GitLab, Bitbucket and Gitea have their own forms of folder pages (`/tree/main/skills/pdf`) and of archives. A
 * host that is not known by name is recognised by its path, or both Gitea's and GitLab's archive are tried. `key` is
 * the same for every spelling and branch, so that one folder is one skill.
 *
 * The egress policy applies at every step, with 5 redirects, 45 s in all and 25 MB. Faults: 400 for the URL, 404 for a
 * repository that does not exist or is private (hosts do not tell), 502 for a host that is down or answers with no zip,
 * 413 above the size.
 */
import { Injectable } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { DomainError, InvalidInputError, TooLargeError } from '../../platform/errors/domain-error.js';
import { Egress } from '../../platform/egress/egress.js';
import { discard, follow, readWithin, RedirectRefusedError } from '../../platform/egress/follow.js';
import { parseUrl } from '../../config/parse-url.js';
import { ARCHIVE_BYTES_MAX } from './skill-package.js';
import { RepositoryNotFoundError, RepositoryUnavailableError } from './skills.errors.js';

/** GitHub redirects once, to codeload.github.com. */
const REDIRECTS_MAX = 5;

/** Limit of the whole download. Published clients repeat a request after 60 s. */
const FETCH_MS_MAX = 45_000;

/** Signatures a zip may begin with: a file, or the end of an empty one. */
const ZIP_STARTS = ['PK\x03\x04', 'PK\x05\x06'];

/** Fetches repositories as zips, through {@link Egress} at every step. */
@Injectable()
export class GitArchives {
  constructor(private readonly egress: Egress) {}

  /**
   * Fetches the first of these URLs that exists.
   *
   * @throws EgressRefusedError, RepositoryNotFoundError, RepositoryUnavailableError, TooLargeError
   */
  async fetch(candidates: URL[]): Promise<Buffer> {
    const signal = AbortSignal.timeout(FETCH_MS_MAX);
    let missing: RepositoryNotFoundError | null = null;
    for (const candidate of candidates) {
      try {
        return await this.fetchOne(candidate, signal);
      } catch (error) {
        if (!(error instanceof RepositoryNotFoundError)) throw asFailure(error, candidate.host);
        missing ??= error;
      }
    }
    throw missing ?? new Error('No address to fetch from');
  }

  private async fetchOne(start: URL, signal: AbortSignal): Promise<Buffer> {
    const headers = { 'user-agent': 'slipway', accept: 'application/zip, */*', 'accept-encoding': 'identity' };
    const { url, answer } = await follow(this.egress, start, { headers, signal, redirectsMax: REDIRECTS_MAX });
    if (answer.statusCode === 200) return readZip(answer.body, url.host);
    discard(answer.body);
    throw refusal(url.host, answer.statusCode);
  }
}

/** The folder of a skill in a repository, and the URLs of the repository's zip. */
export interface GitSource {
  /** The owner's URL, normalized. */
  gitUrl: string;
  /** Repository and folder, the same for every spelling and every branch. */
  key: string;
  /** In the repository; empty when the URL names the whole repository. */
  folder: string;
  /** To be tried in turn: an unknown host may be of several kinds. */
  archives: URL[];
}

/** URL patterns of a kind of host. */
interface Host {
  /** The part between repository and `ref/folder` in the URL of a folder's page. */
  browse: RegExp;
  /** Path of the zip of a branch, tag or commit, below the repository. */
  archive: (ref: string) => string;
}

const github: Host = { browse: /\/(?:tree|blob)\//, archive: (ref) => `/archive/${ref}.zip` };
const gitlab: Host = { browse: /\/-\/(?:tree|blob)\//, archive: (ref) => `/-/archive/${ref}/repository.zip` };
const bitbucket: Host = { browse: /\/src\//, archive: (ref) => `/get/${ref}.zip` };
/** Gitea, Forgejo and their forks. */
const gitea: Host = { browse: /\/src\/(?:branch|tag|commit)\//, archive: (ref) => `/archive/${ref}.zip` };

const known: Record<string, Host> = { 'github.com': github, 'gitlab.com': gitlab, 'bitbucket.org': bitbucket };

/** With percent-encoding; the column is indexed. */
const URL_LENGTH_MAX = 1_000;

/** The newest commit of the default branch, for every kind. */
const HEAD = 'HEAD';

/** Reads the address of a repository or of a folder in one. @throws InvalidInputError */
export function parseGitUrl(text: string): GitSource {
  const url = parseHttpUrl(text);
  const host = known[url.hostname] ?? [gitlab, gitea, github].find(({ browse }) => browse.test(url.pathname));
  const [repository = '', rest] = splitOnce(url.pathname, host?.browse);
  const path = repository.replace(/\/+$/, '').replace(/\.git$/, '');
  if (!/^(\/[^/]+)+$/.test(path)) {
    throw new InvalidInputError('gitUrl must name a repository: https://host/owner/repository');
  }
  const [ref = HEAD, ...folders] = (rest ?? HEAD).split('/').filter((part) => part !== '');
  const folder = decodePath(folders.join('/')).replace(/(^|\/)SKILL\.md$/, '');
  return {
    gitUrl: url.href,
    key: `${url.host}${path} ${folder}`.toLowerCase(),
    folder,
    archives: (host ? [host] : [gitea, gitlab]).map(({ archive }) => new URL(`${path}${archive(ref)}`, url)),
  };
}

function parseHttpUrl(text: string): URL {
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
  return url;
}

function splitOnce(path: string, at: RegExp | undefined): [string, string?] {
  const found = at?.exec(path);
  return found ? [path.slice(0, found.index), path.slice(found.index + found[0].length)] : [path];
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new InvalidInputError('gitUrl holds a broken percent-encoding');
  }
}

async function readZip(body: Dispatcher.ResponseData['body'], host: string): Promise<Buffer> {
  const archive = await readWithin(body, ARCHIVE_BYTES_MAX);
  if (archive === null) {
    throw new TooLargeError(`The repository is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MB as a zip`);
  }
  if (ZIP_STARTS.includes(archive.toString('latin1', 0, 4))) return archive;
  throw new RepositoryUnavailableError(
    `${host} answered with something that is not a zip file: check the URL, and that the repository is public`,
  );
}

function refusal(host: string, status: number): DomainError {
  // Hosts hide a private repository behind any of these.
  if ([401, 403, 404, 410].includes(status)) return new RepositoryNotFoundError(host, status);
  return new RepositoryUnavailableError(`${host} answered ${status} for the repository: try again later`);
}

/** Turns failures of sockets, DNS and TLS into domain errors. */
function asFailure(error: unknown, host: string): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof RedirectRefusedError) {
    return new RepositoryUnavailableError(
      error.reason === 'too many'
        ? `${host} redirects more than ${REDIRECTS_MAX} times`
        : `${error.from.host} leads to an address without TLS, which is not followed`,
    );
  }
  const { name, code } = error as NodeJS.ErrnoException;
  const reason = name === 'TimeoutError' ? `no whole answer within ${FETCH_MS_MAX / 1000} s` : (code ?? name);
  return new RepositoryUnavailableError(`The repository could not be fetched from ${host}: ${reason}`, error);
}
