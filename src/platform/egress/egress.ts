/**
 * Outbound requests to URLs from users: Slipway connects only to addresses that the policy allows, however the URL is
 * spelled, the name resolves or the target redirects.
 *
 * The policy is applied where sockets are opened: each new connection resolves its name once and goes to an address
 * that was checked, so no second DNS response can change the target. Redirects are returned, never followed:
 * `follow.ts` passes each through the check again.
 *
 * With a proxy (`EGRESS_PROXY`), connections to listed addresses are direct, all others go through the proxy by name,
 * because proxies have rules about names. A name is rejected if any of its addresses is closed, as far as this machine
 * resolves it. The proxy resolves it again, so it must block the operator's internal addresses itself.
 *
 * Rejections do not reveal internal addresses. Only connecting has a deadline (10 s).
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import type { EventEmitter } from 'node:events';
import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { domainToUnicode } from 'node:url';
import { promisify } from 'node:util';
import { growingLru } from '../limits/growing-lru.js';
import { withTimeout } from '../limits/with-timeout.js';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { parseUrl } from '../../config/parse-url.js';
import { USER_AGENT } from '../../config/version.js';
import { addressKind, portOf, type AddressKind, type AddressPolicy } from './address-policy.js';
import { EgressRefusedError } from './egress.errors.js';
import { openTunnel } from './proxy-tunnel.js';
import { surviveEarlyClose } from './early-close.js';

/** Resolves a name to all its addresses, in the order they should be tried; `dns.lookup` fits. */
export type ResolveHost = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Closed ports, each with a test for the addresses at which it is closed. */
export type ClosedPorts = ReadonlyMap<number, (address: string) => boolean>;

export interface EgressConnectOptions {
  /** PEM certificates trusted instead of the bundled ones. Verification cannot be disabled. */
  ca?: string | string[];
  /** Ports at which addresses are blocked whatever the policy allows. */
  closedPorts?: ClosedPorts;
  /** URL of the HTTP proxy for every address that no rule of the policy lists; null or absent: none. */
  proxy?: string | null;
}

export interface EgressRequestOptions {
  method: Dispatcher.HttpMethod;
  /**
   * Header names in any case. `Host` is rejected: it would choose another site, and the TLS name, at a checked address.
   */
  headers: Record<string, string | string[]>;
  body?: Dispatcher.DispatchOptions['body'];
  /** Aborting, or emitting `abort`, closes the socket immediately, even while the body is being read. */
  signal?: AbortSignal | EventEmitter;
  /**
   * `stream` for requests that remain open (SSE listeners), so that they never hold a socket that calls wait for.
   * Default `call`.
   */
  dispatcherKind?: 'call' | 'stream';
  /** True to close the socket after the response instead of keeping it. */
  isSocketClosed?: boolean;
  /** True for the request of a hosted program, which names its own sender. */
  isForwarded?: boolean;
}

export interface DialledSocket {
  /** TLS version, such as `TLSv1.3`. */
  tlsVersion: string | null;
  /** Expiry of its certificate, as Node writes it. */
  certificateUntil: string | null;
}

export interface LastConnect {
  guardMs: number;
  connectMs: number;
  /** Time at which the socket was open, by `performance.now()`. */
  at: number;
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Node's default of 250 ms gives up on a working address with a longer round trip, and fails if it was the only one.
 */
const NEXT_ADDRESS_AFTER_MS = 2_000;

/**
 * With a proxy: a name that does not resolve within this time is left to the proxy. Internal name servers might know
 * only internal names.
 */
const NAME_WAIT_MS = 2_000;

const CALL_SOCKETS_PER_ORIGIN = 64;

/**
 * Below the 5 s after which uvicorn closes without announcing it: a POST during the close has an unknown outcome and is
 * not resent. The time that a server announces is used, less 2 s, up to 30 s.
 */
const IDLE_MS = 4_000;
const IDLE_MS_MAX = 30_000;

/** Maximum number of TLS sessions of all origins of an Agent; undici's default of 100 is meant per origin. */
const TLS_SESSIONS_MAX = 1_000;

const LOCAL_KINDS: ReadonlySet<AddressKind> = new Set(['loopback', 'unspecified']);

/** Returns true for an address of this machine itself. */
export function isLocalAddress(address: string): boolean {
  return LOCAL_KINDS.has(addressKind(address));
}

/** Other parsers (git, curl, proxies) read these differently, so the host of a URL with one is ambiguous. */
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const AMBIGUOUS = /[\u0000-\u001f\u007f\\]/;

/** Thrown for a host that must be reached through the proxy. */
class TunnelNeededError extends Error {
  /** @param addresses of the host, as far as this machine knows them */
  constructor(readonly addresses: LookupAddress[]) {
    super('dialled through the proxy');
  }
}

/** Outbound requests under an address policy. */
export class Egress {
  private readonly connect: buildConnector.connector;
  private readonly closedPorts: ClosedPorts;
  private readonly proxy: URL | null;
  private readonly resolve: ResolveHost;
  private readonly calls: Agent;
  private readonly streams: Agent;
  private readonly connects = growingLru<LastConnect>();
  /** Number of open sockets, in use or idle. */
  openSockets = 0;
  /** Duration of the last lookup of each name. */
  private readonly lookups = growingLru<number>();

  constructor(
    private readonly policy: AddressPolicy,
    resolve: ResolveHost = dnsLookup,
    connectOptions: EgressConnectOptions = {},
  ) {
    this.closedPorts = connectOptions.closedPorts ?? new Map();
    this.proxy = connectOptions.proxy ? new URL(connectOptions.proxy) : null;
    this.resolve = resolve;
    if (this.proxy) {
      // A name that is not resolved here, or not in time, has no addresses: the proxy resolves it.
      const addressesOf = promisify(resolve);
      this.resolve = (hostname, options, callback) => {
        const lookup = addressesOf(hostname, options).catch(() => []);
        void withTimeout(NAME_WAIT_MS, lookup, []).then((addresses) => callback(null, addresses));
      };
    }
    this.connect = this.connector(connectOptions);
    this.calls = this.agent(CALL_SOCKETS_PER_ORIGIN);
    // No limit for streams: they close only when their listener disconnects, so waiting for a full pool might never
    // end.
    this.streams = this.agent(null);
  }

  /**
   * Returns the normalized URL, without fragment, if it is allowed as far as is known without DNS: http or https, no user name
   * or password, and a host that is a name or an allowed address. {@link request} checks names, when their addresses
   * are known. Throws {@link EgressRefusedError}.
   */
  check(url: string | URL): URL {
    const text = typeof url === 'string' ? url.trim() : url.href;
    if (AMBIGUOUS.test(text)) {
      throw new EgressRefusedError(
        'The URL contains a backslash, tab, line break or other control character: remove it.',
      );
    }
    const checked = parseUrl(text);
    // URL parsers from Node 24 on accept labels such as `xn--`, and older ones reject them.
    const hasInvalidPunycode =
      checked?.hostname.includes('xn--') && /(^|\.)xn--/.test(domainToUnicode(checked.hostname));
    if (!checked || hasInvalidPunycode) {
      throw new EgressRefusedError('The URL is not valid: write it as https://host/path or http://host:port/path.');
    }
    requireHttp(checked);
    if (checked.username !== '' || checked.password !== '') {
      throw new EgressRefusedError('The URL carries a user name or password: send credentials in a header instead.');
    }
    checked.hash = '';
    this.judgeHost(checked.hostname, checked.origin, portOf(checked));
    return checked;
  }

  /**
   * Sends one request and resolves with the response headers; `body` must be read or destroyed. No deadline except the
   * connect timeout (10 s, DNS included) and no byte limit on the body: both are up to the caller.
   *
   * Rejects with {@link EgressRefusedError} if the URL's scheme or address is rejected, with `signal.reason` on abort,
   * and with the error of undici or the socket otherwise.
   */
  request(url: URL, options: EgressRequestOptions): Promise<Dispatcher.ResponseData> {
    const { method, body, signal, isSocketClosed: reset, isForwarded } = options;
    let { headers } = options;
    try {
      requireHttp(url);
      const names = Object.keys(headers ?? {}).map((name) => name.toLowerCase());
      if (names.includes('host')) {
        throw new EgressRefusedError('The header "Host" cannot be set: it always names the host of the URL.');
      }
      if (!isForwarded && !names.includes('user-agent')) headers = { ...headers, 'user-agent': USER_AGENT };
    } catch (error) {
      return Promise.reject(error);
    }
    const agent = options.dispatcherKind === 'stream' ? this.streams : this.calls;
    return agent.request({ origin: url.origin, path: url.pathname + url.search, method, headers, body, signal, reset });
  }

  /**
   * Works like {@link request} for the hot path: undici's handler interface instead of a promise and a stream, about 10 µs less a
   * call. The caller has checked the header names, and sets `user-agent`; failures go to the handler, a rejected scheme
   * is thrown.
   */
  dispatch(
    url: URL,
    { method, headers, body, dispatcherKind }: Omit<EgressRequestOptions, 'signal' | 'isSocketClosed' | 'isForwarded'>,
    handler: Dispatcher.DispatchHandler,
  ): void {
    requireHttp(url);
    const agent = dispatcherKind === 'stream' ? this.streams : this.calls;
    agent.dispatch({ origin: url.origin, path: url.pathname + url.search, method, headers, body }, handler);
  }

  /** Returns how the last socket to this origin was opened; undefined if that was long ago. */
  lastConnect(origin: string): LastConnect | undefined {
    return this.connects.get(origin);
  }

  /**
   * Explains why Slipway cannot connect to this URL: how many addresses its host has, and why none of them is allowed;
   * null if one is. The addresses are not returned, see {@link EgressRefusedError.ofName}.
   *
   * @throws the error of DNS
   */
  async locate(url: URL): Promise<{ addresses: number; refusal: EgressRefusedError | null }> {
    const { hostname, origin } = url;
    try {
      this.judgeHost(hostname, origin, portOf(url));
      if (isIP(bareLiteral(hostname)) !== 0) return { addresses: 1, refusal: null };
      const addresses = await new Promise<LookupAddress[]>((resolve, reject) => {
        this.lookupFor(portOf(url))(hostname, { all: true }, (error, answer) => {
          if (error instanceof TunnelNeededError) resolve(error.addresses);
          else if (error) reject(error);
          else resolve(answer as LookupAddress[]);
        });
      });
      return { addresses: addresses.length, refusal: null };
    } catch (error) {
      if (!(error instanceof EgressRefusedError)) throw error;
      const { addresses } = (error.detail ?? {}) as { addresses?: string[] };
      return { addresses: addresses?.length ?? 1, refusal: error };
    }
  }

  /** Opens one socket as a request would, TLS included, describes it and closes it. @throws as {@link request} */
  async dial(url: URL): Promise<DialledSocket> {
    const socket = await this.open(url);
    const tls = socket instanceof TLSSocket ? socket : null;
    const facts = { tlsVersion: tls && tls.getProtocol(), certificateUntil: tls && tls.getPeerCertificate().valid_to };
    socket.destroy();
    return facts;
  }

  /**
   * Opens one socket as a request would, TLS included, and hands it over. The caller closes it and handles its errors,
   * {@link close} does not close it. `https:` means TLS, anything else none. @throws as {@link request}
   */
  open({ hostname, host, protocol, port }: URL): Promise<Socket> {
    return new Promise((resolve, reject) => {
      this.connect({ hostname, host, protocol, port }, (error, socket) => {
        if (socket) resolve(socket.on('error', () => undefined));
        else reject(error ?? new Error('no socket'));
      });
    });
  }

  /**
   * Closes every socket immediately and fails running requests. Callers drain first: a stream never ends by itself, so
   * waiting here might never return, and undici can no longer destroy an Agent's sockets after `Agent.close`.
   */
  async close(): Promise<void> {
    await Promise.all([this.calls.destroy(), this.streams.destroy()]);
  }

  private agent(connections: number | null): Agent {
    return new Agent({
      connect: this.connect,
      connections,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS_MAX,
    });
  }

  /** Checks address literals itself, because Node calls `lookup` only for names. */
  private connector(connectOptions: EgressConnectOptions): buildConnector.connector {
    const connectTo = (port?: number) =>
      buildConnector({
        ca: connectOptions.ca,
        lookup: this.lookupFor(port),
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
        timeout: CONNECT_TIMEOUT_MS,
        maxCachedSessions: TLS_SESSIONS_MAX,
        allowH2: false,
      });
    const connect = connectTo();
    const connectToClosed = new Map([...this.closedPorts.keys()].map((port) => [port, connectTo(port)]));
    return (options, callback) => {
      const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
      try {
        this.judgeHost(options.hostname, originOf(options), port);
      } catch (error) {
        // In a later turn, as with a failing socket: undici is still inside the call that requests the connection.
        queueMicrotask(() => callback(error as EgressRefusedError, null));
        return;
      }
      const from = performance.now();
      this.lookups.delete(options.hostname);
      const direct = connectToClosed.get(port) ?? connect;
      const dial = this.proxy ? this.tunnelling(this.proxy, direct, port) : direct;
      dial(options, (...outcome) => {
        const at = performance.now();
        const guardMs = Math.min(this.lookups.get(options.hostname) ?? 0, at - from);
        this.connects.set(originOf(options), { guardMs, connectMs: at - from - guardMs, at });
        const [, socket] = outcome;
        if (socket && !socket.destroyed) {
          surviveEarlyClose(socket);
          this.openSockets++;
          socket.once('close', () => this.openSockets--);
        }
        callback(...outcome);
      });
    };
  }

  /** Connects directly to listed addresses, and to others through the proxy, with TLS to the host inside the tunnel. */
  private tunnelling(proxy: URL, direct: buildConnector.connector, port: number): buildConnector.connector {
    return (options, callback) => {
      const literal = bareLiteral(options.hostname);
      const tunnel = () => {
        openTunnel(proxy, `${isIPv6(literal) ? `[${literal}]` : literal}:${port}`).then(
          (socket) => {
            if (options.protocol === 'https:') direct({ ...options, httpSocket: socket }, callback);
            else callback(null, socket);
          },
          (error: Error) => callback(error, null),
        );
      };
      if (isIP(literal) !== 0 && !this.policy.lists(literal, literal)) return tunnel();
      direct(options, (...[error, socket]) => {
        if (error instanceof TunnelNeededError) tunnel();
        else if (error) callback(error, null);
        else callback(null, socket);
      });
    };
  }

  /** Throws if the host is an address, or a localhost name (RFC 6761), that is closed. Other names pass. */
  private judgeHost(hostname: string, origin: string, port: number): void {
    const literal = bareLiteral(hostname);
    const addresses =
      isIP(literal) !== 0 ? [literal] : /(^|\.)localhost\.?$/.test(hostname) ? ['127.0.0.1', '::1'] : [];
    const [first] = addresses;
    if (first === undefined || addresses.some((address) => this.allows(address, hostname, port))) return;
    if (this.policy.allows(first, hostname)) throw EgressRefusedError.ofClosedPort(origin);
    throw EgressRefusedError.ofAddress(origin, first, addressKind(first));
  }

  /** Returns a lookup that `net.connect` calls once per connection; it then connects only to addresses of the result. */
  private lookupFor(port?: number): LookupFunction {
    return (hostname, options, callback) => {
      const from = performance.now();
      this.resolve(hostname, { all: true }, (error, addresses) => {
        this.lookups.set(hostname, performance.now() - from);
        if (error) return callback(error, []);
        const allowed = addresses.filter(({ address }) => this.allows(address, hostname, port));
        const direct = this.proxy ? allowed.filter(({ address }) => this.policy.lists(address, hostname)) : allowed;
        const [first] = direct;
        if (first === undefined) {
          const refused = addresses.filter((each) => !allowed.includes(each));
          const isTunnelled = this.proxy && refused.length === 0;
          if (port !== undefined && refused.some(({ address }) => this.policy.allows(address, hostname))) {
            return callback(EgressRefusedError.ofClosedPort(`${hostname}:${port}`), []);
          }
          if (isTunnelled) return callback(new TunnelNeededError(allowed), []);
          const [closed] = refused;
          if (closed === undefined) {
            return callback(Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' }), []);
          }
          const ips = refused.map(({ address }) => address);
          return callback(EgressRefusedError.ofName(hostname, addressKind(closed.address), ips), []);
        }
        if (options.all) callback(null, direct);
        else callback(null, first.address, first.family);
      });
    };
  }

  /** @param port undefined for a port at which no address is closed */
  private allows(address: string, hostname: string, port?: number): boolean {
    const isClosed = port === undefined ? undefined : this.closedPorts.get(port);
    return !isClosed?.(address) && this.policy.allows(address, hostname);
  }
}

/** Returns a host without the brackets of an IPv6 address. */
function bareLiteral(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function originOf({ protocol, host, hostname }: buildConnector.Options): string {
  return `${protocol}//${host ?? hostname}`;
}

function requireHttp(url: URL): void {
  const { protocol } = url;
  if (protocol === 'https:' || protocol === 'http:') return;
  throw new EgressRefusedError(`The URL scheme "${protocol.slice(0, 20)}" is not supported: use https or http.`);
}
