import { InvalidInputError } from '../../platform/errors/domain-error.js';

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

/**
 * Reads the address of a repository (`https://host/owner/repo`, with or without `.git`) or of a folder in one, as it
 * stands in the browser (`https://github.com/owner/repo/tree/main/skills/pdf`).
 *
 * @throws InvalidInputError
 */
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
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw new InvalidInputError('gitUrl must be a URL such as https://github.com/owner/repository');
  }
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
