import { Injectable } from '@nestjs/common';
import { Egress } from '../../platform/egress/egress.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import { ARCHIVE_BYTES_MAX } from './skill-package.js';
import { RepositoryNotFoundError, RepositoryUnavailableError, SkillTooLargeError } from './skills.errors.js';

/** GitHub needs one, to codeload.github.com. */
const REDIRECTS_MAX = 5;

/** For everything together. Published clients repeat a request after 60 s. */
const FETCH_MS_MAX = 45_000;

/** Signatures a zip may begin with: a file, or the end of an empty one. */
const ZIP_STARTS = ['PK\x03\x04', 'PK\x05\x06'];

/** Fetches repositories as zips, through {@link Egress} at every step. */
@Injectable()
export class GitArchives {
  constructor(private readonly egress: Egress) {}

  /**
   * The first of these that exists.
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

  /** Follows redirects by hand: each address is checked anew, and none may leave TLS. */
  private async fetchOne(start: URL, signal: AbortSignal): Promise<Buffer> {
    let url = this.egress.check(start);
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const answer = await this.egress.request(url, {
        method: 'GET',
        headers: { 'user-agent': 'slipway', accept: 'application/zip, */*', 'accept-encoding': 'identity' },
        signal,
      });
      const { statusCode: status, headers, body } = answer;
      if (status === 200) return await readZip(body, url.host);
      body.on('error', () => undefined).destroy();
      const { location } = headers;
      if (status < 300 || status > 399 || typeof location !== 'string') throw refusal(url.host, status);
      const next = this.egress.check(new URL(location, url));
      if (url.protocol === 'https:' && next.protocol === 'http:') {
        throw new RepositoryUnavailableError(`${url.host} leads to an address without TLS, which is not followed`);
      }
      url = next;
    }
    throw new RepositoryUnavailableError(`${start.host} redirects more than ${REDIRECTS_MAX} times`);
  }
}

async function readZip(body: AsyncIterable<Buffer>, host: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the body and its socket: what is too large is not read on.
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > ARCHIVE_BYTES_MAX) {
      throw new SkillTooLargeError(`The repository is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MB as a zip`);
    }
    chunks.push(chunk);
  }
  const archive = Buffer.concat(chunks);
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

/** Failures of sockets, DNS and TLS in a sentence; what is a sentence already stays. */
function asFailure(error: unknown, host: string): DomainError {
  if (error instanceof DomainError) return error;
  const { name, code } = error as NodeJS.ErrnoException;
  const reason = name === 'TimeoutError' ? `no whole answer within ${FETCH_MS_MAX / 1000} s` : (code ?? name);
  return new RepositoryUnavailableError(`The repository could not be fetched from ${host}: ${reason}`, error);
}
