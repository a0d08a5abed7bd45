import { DomainError } from '../../../platform/errors/domain-error.js';
import { Serializable } from '../../../platform/internal-http/error-codec.js';

/** Another local server is paired with the connection, and the pairing has no `force`. */
export class UplinkTakenError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor() {
    super('Another local server is paired with this connection: stop it, or pair with `--force` to replace it.');
  }
}

/** This process accepts no tunnel now: it is full, about to stop, or without its lease. */
export class NoTunnelError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly retryAfterSeconds = 5;
}

/** The account has its full share of the tunnels of this process. */
export class TooManyTunnelsError extends DomainError {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 60;

  constructor(eachMax: number) {
    super(`This account holds ${eachMax} tunnels of this process, as many as one may: end some of them first`);
  }
}

/** The request is not a WebSocket handshake of RFC 6455. */
export class BadHandshakeError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'validation_error';

  constructor() {
    super('This is no WebSocket handshake: send GET with Sec-WebSocket-Version 13 and a Sec-WebSocket-Key (RFC 6455)');
  }
}

/** The process does not hold the tunnel any more; nothing was sent to the local server. */
@Serializable()
export class TunnelMovedError extends Error {}
