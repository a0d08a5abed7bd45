/*
 * Fetches what clients publish: client id metadata documents (draft-ietf-oauth-client-id-metadata-document) and the keys of
 * their `jwks_uri`. `ClientDocuments.fetch` is the option `fetch` of oidc-provider.
 *
 * A URL comes from anybody, so requests go through an egress policy of their own: https on port 443, no private address, those
 * of `EGRESS_ALLOW` included, no redirect, at most 64 KB and 5 s. A good copy counts for 5 minutes.
 * A failure counts for 60 s. Meanwhile the last good copy is used, which the store keeps for all processes, then a pinned
 * document. After 404 or 410 no copy is used: the client withdrew its document.
 *
 * Anybody can name a URL, so one URL is fetched once at a time, 5 of a host and 5 for an asker at once, and 30 for an asker in
 * a minute: this service is no tool to flood others. What is refused for that is not remembered.
 *
 * What fails is a ClientDocumentError, which oidc-provider makes the `cause` of its own error (`invalid_client`). Its words do not
 * say why a host cannot be reached: strangers would learn which names exist in the network of the service. The log does (debug).
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

/** Size limit of a document. Real ones have less than 1 KB, key sets a few. */
export const CLIENT_DOCUMENT_BYTES_MAX = 64 * 1024;

/** Size limit of a copy. Strangers name documents, and 10,000 copies are kept. */
const COPY_BYTES_MAX = 8 * 1024;

const FRESH_S = 5 * 60;
const FAILED_S = 60;

/** Documents of which a process remembers the last response: at most 64 KB each. */
const REMEMBERED_MAX = 200;

/** Documents that a process fetches at once: in all, and of one host or for one asker. */
export const FETCHES_MAX = 20;
export const FETCHES_EACH_MAX = 5;

/** Documents that are fetched for one asker in a minute. */
export const ASKER_FETCHES_MAX = 30;

/** Requests to the hosts of documents: no rule of `EGRESS_ALLOW` counts, since strangers choose the host. */
export class DocumentEgress extends Egress implements OnApplicationShutdown {
  onApplicationShutdown(): Promise<void> {
    return this.close();
  }
}

/** The last good copies of documents, for all processes. */
export abstract class ClientDocumentStore {
  /** The body that {@link write} got last for this URL; null without one. */
  abstract read(url: string): Promise<string | null>;
  abstract write(url: string, body: string): Promise<void>;
}

/** A client's document cannot be used. `message` is for the person who logs in, and for the operator. */
export class ClientDocumentError extends Error {
  /** True when the owner of the address answered that there is no document: then no copy is used. */
  isWithdrawn = false;
}

/** The last response for a URL: a body, or why there is none. */
interface Remembered {
  outcome: string | ClientDocumentError;
  /** Unix time in ms. */
  until: number;
}

/** The `fetch` for documents that clients publish. */
@Injectable()
export class ClientDocuments {
  /** Time limit of one request, body included. */
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

  /** Runs work for an asker, by the key of its address; null for one that is not known. Its fetches count as the asker's. */
  askedBy<T>(asker: string | null, work: () => T): T {
    return this.askers.run(asker, work);
  }

  /** The asker of the work that runs; null for one that is not known. */
  get asker(): string | null {
    return this.askers.getStore() ?? null;
  }

  /**
   * The document at a URL, with status 200 and a `Cache-Control` that says how long this copy counts. The second parameter,
   * in which oidc-provider passes a signal of 2.5 s and a dispatcher of its own, is not used.
   *
   * @throws ClientDocumentError when there is no good document and no copy
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

  /** Takes a place for a fetch. @returns the function to call at its end; null when host, asker or process have no room */
  private takeSlot(address: string): (() => void) | null {
    const { asker } = this;
    const host = `host:${new URL(address).host}`;
    const leave = this.fetches.acquire(asker === null ? host : [host, asker]);
    if (!leave || asker === null || this.rateCounter.add(`documents:${asker}`) <= ASKER_FETCHES_MAX) return leave;
    leave();
    return null;
  }

  /** The copy of a document that may not be fetched now. The refusal is the asker's: nobody else gets it. */
  private async withoutRoom(url: string): Promise<Remembered> {
    return {
      outcome: (await this.copyOf(url)) ?? toDocumentError(url, 'too many are being read. Try again in a minute.'),
      until: 0,
    };
  }

  /** The last good copy of a document, or the pinned one. */
  private async copyOf(url: string): Promise<string | undefined> {
    return (await this.clientDocumentStore.read(url)) ?? pinnedClients.get(url);
  }

  /** @throws ClientDocumentError for anything but a good document */
  private async request(address: string): Promise<string> {
    const url = new URL(address);
    const refuse = (reason: string) => toDocumentError(address, reason);
    // A default port is no part of a URL.
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
    // A page that a proxy or a cloud answers in place of the document must not replace a good copy.
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
