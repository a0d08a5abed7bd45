/**
 * Fetches documents that clients publish: client id metadata documents (draft-ietf-oauth-client-id-metadata-document) and the keys of their
 * `jwks_uri`.
 *
 * Anybody can name a URL, so requests have their own egress policy: https on port 443, no private address (not even those of
 * `EGRESS_ALLOW`), no redirect, at most 64 KB and 5 s. A rejection by the limits of fetches is not cached.
 *
 * A good copy is valid for 5 minutes, a failure for 60 s, during which the last good copy is used, then a pinned document; after 404 or 410
 * no copy is used. Without a copy it throws a ClientDocumentError, whose message does not say why a host is unreachable, which would reveal
 * names of the internal network.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Egress } from '../../platform/egress/egress.js';
import { follow, readWithin, RedirectRefusedError } from '../../platform/egress/follow.js';
import { growingLru } from '../../platform/limits/growing-lru.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { RateCounter } from '../../platform/limits/rate-counter.js';
import { boundExceeded, jsonIn } from '../../platform/text/json-bounds.js';
import { pinnedClients } from './pinned-clients.js';

/** Maximum size of a document. Real documents have less than 1 KB, key sets a few KB. */
export const CLIENT_DOCUMENT_BYTES_MAX = 64 * 1024;

/** Maximum size of a copy: unauthenticated clients name documents, and 10,000 copies are kept. */
const COPY_BYTES_MAX = 8 * 1024;

const FRESH_S = 5 * 60;
const FAILED_S = 60;

/** Maximum number of cached documents, each of at most 64 KB. */
const REMEMBERED_MAX = 200;

/** Concurrent fetches of a process: in all, and of one host or for one requester. */
export const FETCHES_MAX = 20;
export const FETCHES_EACH_MAX = 5;

export const ASKER_FETCHES_MAX = 30;

/** Requests to hosts of documents: ignores `EGRESS_ALLOW`, since unauthenticated clients choose the host. */
export class DocumentEgress extends Egress implements OnApplicationShutdown {
  onApplicationShutdown(): Promise<void> {
    return this.close();
  }
}

export abstract class ClientDocumentStore {
  /** @returns null before the first {@link write} */
  abstract read(url: string): Promise<string | null>;
  abstract write(url: string, body: string): Promise<void>;
}

/** A document cannot be used. `message` is for the user who logs in, and for the operator. */
export class ClientDocumentError extends Error {
  /** True if the host reported that the document does not exist: no copy is then used. */
  isWithdrawn = false;
}

interface Remembered {
  outcome: string | ClientDocumentError;
  /** End of validity, as Unix time in ms. */
  until: number;
}

@Injectable()
export class ClientDocuments {
  /** Time limit of a fetch, including the body. */
  fetchMsMax = 5_000;

  private readonly logger = new Logger('login');
  private readonly remembered = growingLru<Remembered>(REMEMBERED_MAX);
  private readonly loading = new Map<string, Promise<Remembered>>();
  private readonly fetches = new KeyedLimiter(FETCHES_EACH_MAX, FETCHES_MAX);
  private readonly askers = new AsyncLocalStorage<string | null>();

  constructor(
    private readonly documentEgress: DocumentEgress,
    private readonly clientDocumentStore: ClientDocumentStore,
    private readonly rateCounter: RateCounter,
  ) {}

  /**
   * Fetches during the work count towards the limits of the requester.
   *
   * @param asker the key of the requester's address; null if unknown
   */
  askedBy<T>(asker: string | null, work: () => T): T {
    return this.askers.run(asker, work);
  }

  get asker(): string | null {
    return this.askers.getStore() ?? null;
  }

  /**
   * Returns the document at a URL, with status 200 and a `Cache-Control` that says how long this copy is valid. The second parameter, in
   * which oidc-provider passes a signal of 2.5 s and a dispatcher of its own, is not used.
   *
   * @throws ClientDocumentError when there is neither a good document nor a copy
   */
  readonly fetch = async (input: string | URL): Promise<Response> => {
    const url = String(input);
    let last = this.remembered.get(url);
    if (!last || last.until <= Date.now()) {
      let loading = this.loading.get(url);
      if (!loading) {
        const leave = this.takeSlot(url);
        if (!leave) loading = this.withoutRoom(url);
        else {
          loading = this.load(url).finally(() => {
            leave();
            this.loading.delete(url);
          });
          this.loading.set(url, loading);
        }
      }
      last = await loading;
      if (last.until > Date.now()) this.remembered.set(url, last);
    }
    if (typeof last.outcome !== 'string') throw last.outcome;
    const seconds = Math.max(1, Math.ceil((last.until - Date.now()) / 1000));
    const headers = { 'content-type': 'application/json', 'cache-control': `max-age=${seconds}` };
    return new Response(last.outcome, { headers });
  };

  private async load(url: string): Promise<Remembered> {
    try {
      const body = await this.request(url);
      if (Buffer.byteLength(body) <= COPY_BYTES_MAX) await this.clientDocumentStore.write(url, body);
      return { outcome: body, until: Date.now() + FRESH_S * 1000 };
    } catch (error) {
      if (!(error instanceof ClientDocumentError)) throw error;
      const copy = error.isWithdrawn ? null : await this.copyOf(url);
      return { outcome: copy ?? error, until: Date.now() + FAILED_S * 1000 };
    }
  }

  /** @returns the function that frees the slot; null when host, requester or process has none left */
  private takeSlot(address: string): (() => void) | null {
    const { asker } = this;
    const host = `host:${new URL(address).host}`;
    const leave = this.fetches.acquire(asker === null ? host : [host, asker]);
    if (!leave || asker === null || this.rateCounter.add(`documents:${asker}`) <= ASKER_FETCHES_MAX) return leave;
    leave();
    return null;
  }

  /** Returns the copy of a document that cannot be fetched now, or rejects this requester only. */
  private async withoutRoom(url: string): Promise<Remembered> {
    return {
      outcome: (await this.copyOf(url)) ?? toDocumentError(url, 'too many are being read. Try again in a minute.'),
      until: 0,
    };
  }

  private async copyOf(url: string): Promise<string | undefined> {
    return (await this.clientDocumentStore.read(url)) ?? pinnedClients.get(url);
  }

  /** @throws ClientDocumentError for anything other than a good document */
  private async request(address: string): Promise<string> {
    const url = new URL(address);
    const refuse = (reason: string) => toDocumentError(address, reason);
    // `URL` drops a default port.
    if (url.protocol !== 'https:' || url.port !== '') throw refuse('only https on port 443 is read.');
    const headers = { accept: 'application/json' };
    const signal = AbortSignal.timeout(this.fetchMsMax);
    let status: number;
    let bytes: Buffer | null;
    try {
      const { answer } = await follow(this.documentEgress, url, { headers, signal, redirectsMax: 0 });
      status = answer.statusCode;
      bytes = await readWithin(answer.body, CLIENT_DOCUMENT_BYTES_MAX);
    } catch (error) {
      if (error instanceof RedirectRefusedError) throw refuse('it redirects, and redirects are not followed.');
      this.logger.debug({ msg: `The client's document ${address.slice(0, 200)} could not be read`, err: error });
      const { name } = error as { name?: string };
      if (name === 'TimeoutError') throw refuse(`${url.host} did not answer within ${this.fetchMsMax / 1000} s.`);
      throw refuse(`${url.host} cannot be reached.`);
    }
    if (status !== 200) {
      throw Object.assign(refuse(`${url.host} answered ${status}.`), { isWithdrawn: status === 404 || status === 410 });
    }
    if (bytes === null) throw refuse('it has more than 64 KB.');
    const exceeded = boundExceeded(bytes);
    if (exceeded !== null) throw refuse(`it has ${exceeded}.`);
    const body = bytes.toString();
    // A page that a proxy or cloud returns in place of the document must not replace a good copy.
    const document = jsonIn(body) as { client_id?: unknown; keys?: unknown } | null | undefined;
    if (document?.client_id !== address && !Array.isArray(document?.keys)) {
      throw refuse('it is neither a document of this client id nor a set of keys.');
    }
    return body;
  }
}

function toDocumentError(address: string, reason: string): ClientDocumentError {
  const { origin, pathname } = new URL(address);
  return new ClientDocumentError(
    `The client's document ${`${origin}${pathname}`.slice(0, 200)} cannot be used: ${reason}`,
  );
}
