import { isIP } from 'node:net';
import { withinDeadline } from '../../../mcp/protocol/deadline.js';
import { fromSocketError, UpstreamError, type UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import type { Egress } from '../../../platform/egress/egress.js';
import type { DiagnosisLog } from './diagnosis-log.js';

/** The address that is probed. */
export interface NetworkPlace {
  url: URL;
  /** The name of the server, for readers who may not see its address; null for those who may. */
  alias: string | null;
}

/** Probes the network to a server: DNS, egress rules, a socket, TLS. Sends no request. */
export class NetworkProbe {
  private readonly host: string;

  constructor(
    private readonly egress: Egress,
    private readonly place: NetworkPlace,
    private readonly log: DiagnosisLog,
    private readonly left: () => number,
  ) {
    this.host = place.alias === null ? `The host "${place.url.hostname}"` : `The host of ${place.alias}`;
  }

  /** @throws StepFailedError */
  async run(): Promise<void> {
    const { url } = this.place;
    let refusal: Error | null = null;
    const locate = async () => {
      const found = await this.wait(this.egress.locate(url));
      refusal = found.refusal;
      return found.addresses;
    };
    if (isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0) {
      const probe = async () => {
        const count = await locate();
        return `${this.host} has ${count === 1 ? 'one address' : `${count} addresses`} in DNS.`;
      };
      await this.log.run('dns', probe, (error) => this.failure(error, 'has no address in DNS.'));
    } else {
      this.log.skip('dns', 'The host is an address, so there is nothing to ask DNS.');
      await locate();
    }
    if (refusal !== null) {
      this.log.fail('guard', this.failure(refusal, 'has an address that Slipway does not dial.', 'blocked'));
    }
    this.log.ok('guard', 'Its address may be dialled.');
    await this.dial(url);
  }

  /** Socket and TLS are opened in one step; the error shows which of them failed. */
  private async dial(url: URL): Promise<void> {
    const isSecure = url.protocol === 'https:';
    const startedAt = performance.now();
    const past = () => performance.now() - startedAt;
    try {
      const { tlsVersion, certificateUntil } = await this.wait(this.egress.dial(url));
      this.log.ok('connect', 'A connection was opened.', past());
      if (isSecure)
        this.log.ok('tls', `${tlsVersion ?? 'TLS'}, with a certificate good until ${certificateUntil ?? 'some day'}.`);
      else this.log.skip('tls', 'The URL begins with http://, so there is no TLS.');
    } catch (error) {
      const isTls = isSecure && isTlsError(error);
      if (isTls) this.log.ok('connect', 'A connection was opened.', past());
      const failure = this.failure(error, isTls ? 'has no certificate that is valid for it.' : 'takes no connection.');
      this.log.fail(isTls ? 'tls' : 'connect', failure, past());
    }
  }

  private wait<T>(work: Promise<T>): Promise<T> {
    return withinDeadline(work, this.left(), `${this.host} did not answer in time.`);
  }

  /** An error whose message may be shown. @param hidden the message for readers who may not see the address */
  private failure(error: unknown, hidden: string, hint: 'blocked' | null = null): UpstreamFailure {
    const { url, alias } = this.place;
    return alias === null
      ? fromSocketError(error, url, false)
      : new UpstreamError(`${this.host} ${hidden}`, undefined, false, hint);
  }
}

function isTlsError(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/.test(code);
}
