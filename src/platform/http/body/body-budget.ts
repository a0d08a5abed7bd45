import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { UnavailableError } from '../../errors/domain-error.js';
import { clientAddress, isTrusted, peerOf } from '../client-address.js';

/** Limits the number of slow bodies. */
const ARRIVING_BYTES_MIN = 16 * 1024;

/** Time in which a body without a key must arrive: browsers and clients send these forms immediately. */
const FORM_MS_MAX = 10_000;

class BodyPool {
  private bytes = 0;
  private readonly bytesOf = new Map<string, number>();

  constructor(
    private readonly bytesMax: number,
    private readonly ownerBytesMax: number,
  ) {}

  /**
   * Charges bytes to an owner. An owner without other bodies can exceed its share, so that a body of the route's maximum size can always be sent.
   *
   * @param owner null if only the total limit applies
   *
   * @param heldBytes bytes already charged for the same body
   * @throws UnavailableError
   */
  add(owner: string | null, bytes: number, heldBytes: number): void {
    const ownBytes = owner === null ? 0 : (this.bytesOf.get(owner) ?? 0);
    if (this.bytes + bytes > this.bytesMax || (ownBytes > heldBytes && ownBytes + bytes > this.ownerBytesMax)) {
      const message = 'Too many bytes of requests are being received: try again in a moment';
      throw Object.assign(new UnavailableError(message, 1), { noRetry: true });
    }
    this.bytes += bytes;
    if (owner !== null) this.bytesOf.set(owner, ownBytes + bytes);
  }

  release(owner: string | null, bytes: number): void {
    this.bytes -= bytes;
    if (owner === null) return;
    const remaining = (this.bytesOf.get(owner) ?? 0) - bytes;
    if (remaining > 0) this.bytesOf.set(owner, remaining);
    else this.bytesOf.delete(owner);
  }
}

/** Charge of a body, which is released with the response to the request. */
export class BodyLease {
  private charged = 0;
  private bytes = 0;
  private isOver = false;

  /**
   * @param form limits of a body whose caller is not known; null for the route's own size limit, and that of the
   * request's time
   */
  constructor(
    private readonly pool: BodyPool,
    private readonly owner: string | null,
    private readonly response: ServerResponse,
    readonly form: { bytesMax: number; msMax: number } | null,
  ) {}

  /** Begins a body, before its first byte is read. @throws UnavailableError */
  begin(): void {
    // A response whose client has disconnected emits no further event.
    this.isOver = this.response.destroyed;
    this.charge(this.form ? 0 : ARRIVING_BYTES_MIN);
    this.response.once('close', () => {
      this.charge(0);
      this.isOver = true;
    });
  }

  /** Counts bytes that stay in memory. @throws UnavailableError */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.charged) this.charge(this.bytes);
  }

  complete(): void {
    this.charge(this.bytes);
  }

  private charge(bytes: number): void {
    if (this.isOver) return;
    if (bytes > this.charged) this.pool.add(this.owner, bytes - this.charged, this.charged);
    else this.pool.release(this.owner, this.charged - bytes);
    this.charged = bytes;
  }
}

const LEASE = Symbol('body lease');

type LeasedRequest = IncomingMessage & { [LEASE]?: BodyLease };

/**
 * No body can be read before its caller was admitted here, which happens after authorization; requests without a key
 * are admitted on listed routes, with small bodies that arrive within 10 s, charged by their bytes to a separate
 * budget. `/token` has another one: forms on pages never block clients from their tokens.
 */
@Injectable()
export class BodyBudget {
  /** Time limit of a form in requests without a key. */
  formMsMax = FORM_MS_MAX;

  private readonly accounts: BodyPool;
  private readonly strangers: Record<'forms' | 'tokens', BodyPool>;

  constructor(
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {
    const { httpBodiesBytes, httpFormsBytes } = tuning;
    this.accounts = new BodyPool(httpBodiesBytes, httpBodiesBytes / 4);
    // A sixteenth: few addresses must not fill the pool.
    const pool = () => new BodyPool(httpFormsBytes, httpFormsBytes / 16);
    this.strangers = { forms: pool(), tokens: pool() };
  }

  admit(request: IncomingMessage, response: ServerResponse, accountId: string): void {
    (request as LeasedRequest)[LEASE] = new BodyLease(this.accounts, accountId, response, null);
  }

  /** Admits an unauthenticated request with a body of at most 64 KB. @param pool `tokens` for requests of `/token` */
  admitStranger(request: IncomingMessage, response: ServerResponse, pool: 'forms' | 'tokens' = 'forms'): void {
    const { trustProxy } = this.env;
    const address = clientAddress(request, trustProxy);
    const owner = isTrusted(address, trustProxy) ? null : peerOf(address);
    const form = { bytesMax: this.tuning.httpFormBytes, msMax: this.formMsMax };
    const lease = new BodyLease(this.strangers[pool], owner, response, form);
    (request as LeasedRequest)[LEASE] = lease;
  }
}

/** @throws Error for a request that was not admitted, which is a bug */
export function bodyLeaseOf(request: IncomingMessage): BodyLease {
  const lease = (request as LeasedRequest)[LEASE];
  if (!lease) throw new Error(`The body of ${request.url} is read before its caller is allowed`);
  return lease;
}
