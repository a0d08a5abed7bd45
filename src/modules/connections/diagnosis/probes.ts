import { isIP } from 'node:net';
import { withinDeadline } from '../../../mcp/protocol/deadline.js';
import { failureOf } from '../../../mcp/protocol/failures.js';
import { fromSocketError, UpstreamError, type UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import type { Egress } from '../../../platform/egress/egress.js';
import type { DiagnosisLog } from './diagnosis-log.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { ToolCatalog } from '../../../mcp/client/tools/tool-catalog.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { quote } from '../../../platform/text/quoted.js';
import { statusAfter } from '../core/connection-status.js';

export interface NetworkPlace {
  url: URL;
  /** The name of the server, for readers who cannot see its address; null for those who can. */
  alias: string | null;
}

const TLS_ERROR = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/;

/** Probes the network path to a server: DNS, egress rules, a socket, TLS. Sends no request. */
export class NetworkProbe {
  private readonly host: string;

  constructor(
    private readonly egress: Egress,
    private readonly place: NetworkPlace,
    private readonly log: DiagnosisLog,
    private readonly msLeft: () => number,
  ) {
    this.host = place.alias === null ? `The host "${place.url.hostname}"` : `The host of ${place.alias}`;
  }

  /** @throws StepFailedError */
  async run(): Promise<void> {
    const { url } = this.place;
    let refusal: Error | null = null;
    const locate = async () => {
      const lookup = await this.wait(this.egress.locate(url));
      refusal = lookup.refusal;
      return lookup.addresses;
    };
    if (isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0) {
      const probe = async () => {
        const count = await locate();
        if (count === 0) return `${this.host} has no address in DNS here: the proxy (EGRESS_PROXY) resolves it.`;
        return `${this.host} has ${count === 1 ? 'one address' : `${count} addresses`} in DNS.`;
      };
      await this.log.run('dns', probe, (error) => this.failure(error, 'has no address in DNS.'));
    } else {
      this.log.skip('dns', 'The host is an IP address: no DNS lookup.');
      await locate();
    }
    if (refusal !== null) {
      this.log.fail('guard', this.failure(refusal, 'has an address that the egress rules refuse.', 'blocked'));
    }
    this.log.ok('guard', 'The egress rules allow its address.');
    await this.dial(url);
  }

  /** Opens the socket and TLS together: the error shows which of them failed. */
  private async dial(url: URL): Promise<void> {
    const isSecure = url.protocol === 'https:';
    const startedAt = performance.now();
    const past = () => performance.now() - startedAt;
    try {
      const { tlsVersion, certificateUntil } = await this.wait(this.egress.dial(url));
      this.log.ok('connect', 'A connection was opened.', past());
      if (isSecure)
        this.log.ok(
          'tls',
          `${tlsVersion ?? 'TLS'}, with a certificate that is valid until ${certificateUntil ?? 'an unknown date'}.`,
        );
      else this.log.skip('tls', 'The URL begins with http://, so there is no TLS.');
    } catch (error) {
      const { code = '' } = error as { code?: string };
      const isTls = isSecure && TLS_ERROR.test(code);
      if (isTls) this.log.ok('connect', 'A connection was opened.', past());
      const failure = this.failure(
        error,
        isTls ? 'has no certificate that is valid for it.' : 'accepts no connection.',
      );
      this.log.fail(isTls ? 'tls' : 'connect', failure, past());
    }
  }

  private wait<T>(work: Promise<T>): Promise<T> {
    return withinDeadline(work, this.msLeft(), `${this.host} did not answer in time.`);
  }

  /** Returns an error whose message is safe to return. @param hidden the message for readers who cannot see the address */
  private failure(error: unknown, hidden: string, failure?: 'blocked'): UpstreamFailure {
    const { url, alias } = this.place;
    return alias === null
      ? fromSocketError(error, url, false)
      : new UpstreamError(`${this.host} ${hidden}`, { outcomeUnknown: false, failure });
  }
}

/** @throws StepFailedError */
export async function probeSession(
  channel: Channel,
  log: DiagnosisLog,
  msLeft: () => number,
  { overHttp }: { overHttp: boolean },
): Promise<void> {
  const startedAt = performance.now();
  const past = () => performance.now() - startedAt;
  try {
    const { era, protocolVersion, serverInfo } = await channel.open(msLeft());
    if (overHttp) log.ok('http', 'It answers requests.', past());
    const server = `${quote(serverInfo.name)} ${quote(serverInfo.version)}`;
    log.ok('era', `It speaks MCP ${protocolVersion} (${era}) and calls itself ${server}.`, past());
    log.ok('authorization', 'It accepts the credentials.');
  } catch (error) {
    const failure = requireFailure(error);
    const step = overHttp ? stepOf(failure) : 'era';
    if (step !== 'http' && overHttp) log.ok('http', 'It answers requests.', past());
    if (step === 'authorization') log.skip('era', 'The server requires authorization before it opens a session.');
    log.fail(step, failure, past());
  }
}

/** Lists the tools, without calling any. @throws StepFailedError */
export async function probeTools(channel: Channel, log: DiagnosisLog, msLeft: () => number): Promise<void> {
  const list = async () => {
    const { length } = await new ToolCatalog(channel).list(msLeft());
    return `It lists ${length === 1 ? 'one tool' : `${length} tools`}.`;
  };
  await log.run('list', list, requireFailure);
}

function stepOf(failure: Error): 'http' | 'era' | 'authorization' {
  const { detail } = failure as DomainError;
  return failureOf(detail instanceof UpstreamError ? detail : failure).step;
}

function requireFailure(error: unknown): UpstreamFailure {
  if (error instanceof DomainError && statusAfter(error)) return error as UpstreamFailure;
  throw error;
}
