import { EgressProxyError, EgressRefusedError } from '../../platform/egress/egress.errors.js';

/** An error of an outgoing request; its message is for the hosted code. */
export class OutboundError extends Error {
  /** @param isLogged true for a request that a rule forbids: also logged for the author */
  constructor(
    readonly status: number,
    message: string,
    readonly isLogged = status === 403,
  ) {
    super(message);
  }
}

const TIMED_OUT = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'ETIMEOUT']);
const NO_NAME = new Set(['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EAI_AGAIN']);
const TLS_CODES = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$)/;

export function outboundErrorOf(error: unknown, host: string): OutboundError {
  if (error instanceof OutboundError) return error;
  if (error instanceof EgressRefusedError) {
    const { addressKind, message } = error;
    if (addressKind === undefined) return new OutboundError(403, message);
    return new OutboundError(
      403,
      `The host "${host}" has no public address: hosted code reaches public addresses only. For a service of your own ` +
        `network, the operator lists it in HOSTING_EGRESS_ALLOW, and the server's owner adds "${host}:<port>" to egressAllow ` +
        'with PATCH /servers/{qualifiedName}/runtime. The ports of Slipway and its database stay closed.',
    );
  }
  if (error instanceof EgressProxyError) return new OutboundError(502, error.message);
  const { code = '' } = error as { code?: string };
  if (TIMED_OUT.has(code)) {
    return new OutboundError(504, `The host "${host}" did not answer in time (${code}): try again later.`);
  }
  if (NO_NAME.has(code)) {
    return new OutboundError(502, `The host "${host}" has no address (${code}): check its name.`);
  }
  if (TLS_CODES.test(code)) {
    return new OutboundError(
      502,
      `The TLS connection to "${host}" failed (${code}): its certificate must be valid for this host.`,
    );
  }
  const reason = code === '' ? 'the connection broke' : code;
  return new OutboundError(
    502,
    `The request to "${host}" failed (${reason}): check that the host takes it, and try again.`,
  );
}
