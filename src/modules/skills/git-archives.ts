import { Injectable } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { Egress } from '../../platform/egress/egress.js';
import { discard, follow, readWithin, RedirectRefusedError } from '../../platform/egress/follow.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import { ARCHIVE_BYTES_MAX } from './skill-package.js';
import { RepositoryNotFoundError, RepositoryUnavailableError, SkillTooLargeError } from './skills.errors.js';

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
   * @throws EgressRefusedError, RepositoryNotFoundError, RepositoryUnavailableError, SkillTooLargeError
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

async function readZip(body: Dispatcher.ResponseData['body'], host: string): Promise<Buffer> {
  const archive = await readWithin(body, ARCHIVE_BYTES_MAX);
  if (archive === null) {
    throw new SkillTooLargeError(`The repository is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MB as a zip`);
  }
  if (ZIP_STARTS.includes(archive.toString('latin1', 0, 4))) return archive;
  throw new RepositoryUnavailableError(
    `${host} answered with something that is no zip: check the URL, and that the repository is public`,
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
