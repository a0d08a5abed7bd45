import { errorOf } from '../errors/domain-error.js';
import { unwrapped, type AddressKind } from './address-policy.js';

/**
 * Slipway does not connect to the target of a URL. The message states what was rejected and what would help; it
 * contains at most the scheme, host and port of the URL, because user name, password, path and query can contain
 * secrets.
 */
export class EgressRefusedError extends errorOf('invalid', 'validation_error') {
  /** `addressKind` is the class of the address; undefined when the URL itself was rejected. */
  constructor(
    message: string,
    detail?: unknown,
    readonly addressKind?: AddressKind,
  ) {
    super(message, detail);
  }

  /** Returns the error for a host that no rule opens: an address, or a name that always means this machine. `origin` has no userinfo. */
  static ofAddress(origin: string, address: string, kind: AddressKind): EgressRefusedError {
    const range =
      kind === 'cloud metadata' ? '' : ` or ${kind === 'loopback' ? 'loopback' : 'the range of the address'}`;
    return new EgressRefusedError(
      `The address of "${origin}" is ${kind} (${address}): Slipway does not dial ${kind} addresses. ` +
        `An operator can allow it by adding ${unwrapped(address)}${range} to EGRESS_ALLOW.`,
      undefined,
      kind,
    );
  }

  /** Returns the error for a port that belongs to this service itself. */
  static ofClosedPort(place: string): EgressRefusedError {
    return new EgressRefusedError(
      `"${place}" is a port of this service itself (its database, Redis, or calls between its processes), which no setting ` +
        'opens: let the server listen on another port.',
      undefined,
      'loopback',
    );
  }

  /**
   * Returns the error for a name whose addresses are all closed; `kind` is that of the first. Addresses and kind are not in the message: with
   * them, anyone could read the operator's internal DNS through the gateway.
   */
  static ofName(hostname: string, kind: AddressKind, addresses: string[]): EgressRefusedError {
    return new EgressRefusedError(
      `The host "${hostname}" has no public address: Slipway does not dial it. An operator can allow it in EGRESS_ALLOW.`,
      { hostname, addresses },
      kind,
    );
  }
}

/** The proxy failed. The message has neither its address nor its password. */
export class EgressProxyError extends errorOf('upstream', 'upstream_error') {
  static ofConnectFailure(error: NodeJS.ErrnoException): EgressProxyError {
    return new EgressProxyError(
      `The HTTP proxy of this service (EGRESS_PROXY) cannot be used (${error.code ?? 'no answer'}): its operator must ` +
        'check its address, and that it runs.',
      error,
    );
  }

  /** Returns the error for a proxy that responded with a status other than 2xx. @param authority `host:port` */
  static ofStatus(status: number, authority: string): EgressProxyError {
    const summary = `The HTTP proxy of this service (EGRESS_PROXY) answered ${status}`;
    if (status === 407) {
      return new EgressProxyError(`${summary}: the operator must correct the user name and password in EGRESS_PROXY.`);
    }
    return new EgressProxyError(
      status >= 500
        ? `${summary} for ${authority}: it does not reach this host. Is its name right, and does the server run?`
        : `${summary} for ${authority}: its rules must allow CONNECT to this host and port.`,
    );
  }
}
