import { DomainError } from '../errors/domain-error.js';
import { HOST_RULE_KINDS, type AddressKind } from './address-policy.js';

/**
 * Slipway will not dial what a URL points at. The message says what was refused and what would help; it carries at most
 * the scheme, host and port of the URL, because user name, password, path and query may hold secrets.
 */
export class EgressRefusedError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'validation_error';

  /** `addressKind` is what the address is; undefined when the URL itself was refused. */
  constructor(
    message: string,
    detail?: unknown,
    readonly addressKind?: AddressKind,
  ) {
    super(message, detail);
  }

  /** The host is an address, or a name that always means this machine, that no rule opens. `origin` has no userinfo. */
  static ofAddress(origin: string, address: string, kind: AddressKind): EgressRefusedError {
    return new EgressRefusedError(
      `The address of "${origin}" is ${kind} (${address}): Slipway does not dial ${kind} addresses. ${remedy(kind, address)}`,
      undefined,
      kind,
    );
  }

  /**
   * Every address the name resolved to is closed; `kind` is that of the first. The addresses are in `detail` only: with
   * them in the message, anyone could read the operator's internal DNS through the gateway.
   */
  static ofName(hostname: string, kind: AddressKind, addresses: string[]): EgressRefusedError {
    return new EgressRefusedError(
      `The host "${hostname}" resolves to a ${kind} address: Slipway does not dial ${kind} addresses. ` +
        remedy(kind, HOST_RULE_KINDS.has(kind) || kind === 'loopback' ? hostname : undefined),
      { hostname, addresses },
      kind,
    );
  }
}

/** `entry` is what to write into EGRESS_ALLOW; undefined if only the address would help and the caller may not see it. */
function remedy(kind: AddressKind, entry: string | undefined): string {
  if (entry === undefined) return 'An operator can allow it by listing the address in EGRESS_ALLOW.';
  const range = kind === 'cloud metadata' ? '' : ` or ${kind === 'loopback' ? 'loopback' : 'the range of the address'}`;
  return `An operator can allow it by adding ${entry}${range} to EGRESS_ALLOW.`;
}
