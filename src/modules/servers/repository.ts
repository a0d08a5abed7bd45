import { parseUrl } from '../../config/parse-url.js';

/** Owner and name of a repository, in lower case, as its hosts compare them. */
export interface RepositoryName {
  repoOwner: string | null;
  repoName: string | null;
}

/** What the URL of a repository says of it: the first two segments of its path. Both null when it has no two. */
export function repositoryNameOf(url: string | null): RepositoryName {
  const [, owner, name, ...rest] = parseUrl(url ?? '')?.pathname.split('/') ?? [];
  const bare = name?.replace(/\.git$/, '');
  if (!owner || !bare || rest.length > 20) return { repoOwner: null, repoName: null };
  return { repoOwner: owner.toLowerCase(), repoName: bare.toLowerCase() };
}
