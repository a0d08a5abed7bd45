/**
 * Normalises the metadata of an OAuth client (RFC 7591 section 2) to what this authorization server supports. oidc-provider validates
 * registrations, client id metadata documents and loaded clients with it, each time before its own checks. A client is rejected only for
 * its redirect URIs (`invalid_redirect_uri`) and for more than 8 KB (`invalid_client_metadata`).
 */
import { parseUrl } from '../../config/parse-url.js';
import { displayName } from '../../platform/text/quoted.js';

export type ClientMetadata = Record<string, unknown>;

type OidcErrorClass = new (error: string, description: string) => Error;

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Schemes without a dot that belong to editors and MCP clients. Any other private scheme needs a dot (RFC 8252 section 7.1:
 * `com.example.app:`): a denylist of the schemes that browsers and systems open themselves would never be complete.
 */
const APP_SCHEMES: ReadonlySet<string> = new Set(
  (
    'cursor cursor-nightly vscode vscode-insiders vscodium vscodium-insiders code-oss windsurf windsurf-next windsurf-insiders ' +
    'trae trae-cn kiro qoder antigravity positron void pearai codebuddy zed zed-preview jetbrains idea fleet nova ' +
    'claude claude-desktop chatgpt codex goose opencode gemini lechat perplexity poe raycast warp warppreview warpdev ' +
    'lmstudio jan msty boltai chatwise chatbox cherrystudio cherry-studio deepchat librechat witsy 5ire enconvo ' +
    'postman insomnia factory factory-desktop devin amp augment mcp-inspector x-github-client ghcp copilot'
  )
    .split(' ')
    .map((scheme) => `${scheme}:`),
);

/** Characters that URL parsers remove or rewrite, so that two parsers could read different addresses. */
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const AMBIGUOUS = /[\u0000-\u0020\u007f\\]/;

/** Used members. All others are deleted, and oidc-provider adds its defaults again. */
const TEXT_MEMBERS = ['client_id', 'client_name', 'client_secret', 'token_endpoint_auth_signing_alg'];
const LINK_MEMBERS = ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri', 'jwks_uri'];
const NUMBER_MEMBERS = ['client_id_issued_at', 'client_secret_expires_at'];

const CLIENT_NAME_MAX = 100;

/** Maximum size of the metadata; real clients send less than 1 KB. */
const METADATA_BYTES_MAX = 8 * 1024;

/** A client was rejected. `message` is for the client's developer, and for the operator. */
export class ClientRefusedError extends Error {
  /** @param code as in RFC 7591 section 3.2.2 */
  constructor(
    readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata',
    message: string,
  ) {
    super(message);
  }
}

/**
 * @param ErrorClass `errors.CustomOIDCProviderError` of oidc-provider, which is imported dynamically
 * @param redirectHosts entries of OAUTH_REDIRECT_HOSTS; null: any redirect URI
 */
export function clientMetadataExtension(ErrorClass: OidcErrorClass, redirectHosts: readonly string[] | null) {
  return {
    // The library drops members that it does not know: without this entry the list of methods would be missing.
    properties: ['slipway', 'token_endpoint_auth_methods_supported'],
    validator: (_ctx: unknown, property: string, _value: unknown, metadata: ClientMetadata): void => {
      if (property !== 'slipway') return;
      try {
        normaliseClientMetadata(metadata, redirectHosts);
      } catch (error) {
        if (!(error instanceof ClientRefusedError)) throw error;
        throw new ErrorClass(error.code, error.message);
      }
    },
  };
}

/**
 * Changes metadata of a client in place into metadata that this server supports. Idempotent.
 *
 * - `application_type`: `native` with a loopback or custom-scheme redirect URI, else `web`
 * - `grant_types`: `authorization_code` and `refresh_token`; `response_types`: `code`; no `scope`: a registered scope would limit later
 *   requests of the client
 * - `token_endpoint_auth_method`: the client's own if supported, else the first supported one of its list
 *   `token_endpoint_auth_methods_supported`, else `none`. `private_key_jwt` is for client id metadata documents with a `jwks_uri`; methods
 *   with a secret are for registered clients, which have one.
 * - `client_name`: at most 100 characters, none of them invisible
 * - members that are null, of a wrong type or unknown: deleted
 *
 * @throws ClientRefusedError for redirect URIs that are missing, dangerous, or outside of `redirectHosts`, and for more than 8 KB
 */
export function normaliseClientMetadata(metadata: ClientMetadata, redirectHosts: readonly string[] | null): void {
  const { redirect_uris: redirectUris } = metadata;
  if (!Array.isArray(redirectUris) || redirectUris.length === 0) {
    throw new ClientRefusedError(
      'invalid_redirect_uri',
      'redirect_uris is missing or empty: list the addresses to which the client is redirected.',
    );
  }
  for (const uri of redirectUris as unknown[]) requireRedirect(uri, redirectHosts);

  const jwksUri = parseUrl(String(metadata.jwks_uri));
  const isDocument = String(metadata.client_id).startsWith('https://');
  const works: Record<string, boolean> = {
    none: true,
    client_secret_post: typeof metadata.client_secret === 'string',
    client_secret_basic: typeof metadata.client_secret === 'string',
    private_key_jwt: isDocument && jwksUri?.protocol === 'https:',
  };
  const methods = [metadata.token_endpoint_auth_method, metadata.token_endpoint_auth_methods_supported].flat();
  const method = methods.find((each) => typeof each === 'string' && works[each] === true) ?? 'none';

  const keep = new Map<string, unknown>();
  for (const member of TEXT_MEMBERS) {
    if (typeof metadata[member] === 'string' && metadata[member] !== '') keep.set(member, metadata[member]);
  }
  const name = displayName(typeof metadata.client_name === 'string' ? metadata.client_name : '', CLIENT_NAME_MAX);
  if (name === '') keep.delete('client_name');
  else keep.set('client_name', name);
  for (const member of LINK_MEMBERS) {
    const link = typeof metadata[member] === 'string' ? parseUrl(metadata[member]) : null;
    if (link?.protocol === 'https:' || link?.protocol === 'http:') keep.set(member, metadata[member]);
  }
  for (const member of NUMBER_MEMBERS) if (Number.isSafeInteger(metadata[member])) keep.set(member, metadata[member]);
  if (method !== 'private_key_jwt')
    for (const member of ['jwks_uri', 'token_endpoint_auth_signing_alg']) keep.delete(member);
  if (method === 'none' || isDocument)
    for (const member of ['client_secret', 'client_secret_expires_at']) keep.delete(member);

  for (const member of Object.keys(metadata)) delete metadata[member];
  Object.assign(metadata, Object.fromEntries(keep), {
    redirect_uris: redirectUris,
    // oidc-provider rejects https to loopback for native clients, so https alone does not make a client native.
    application_type: redirectUris.every((uri: string) => new URL(uri).protocol === 'https:') ? 'web' : 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: method,
  });
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX) {
    throw new ClientRefusedError(
      'invalid_client_metadata',
      'The metadata of the client is refused: it has more than 8 KB. List fewer and shorter redirect addresses.',
    );
  }
}

/**
 * Lets clients use a registered loopback redirect URI with another port and another name of loopback.
 *
 * oidc-provider 9.13.3 ignores the port of `http://localhost`, `http://127.0.0.1` and `http://[::1]` for native clients, but compares the
 * names: a client that registered `localhost` is rejected with `127.0.0.1`.
 *
 * @param Client class `Client` of a provider; its method is replaced for this provider
 */
export function allowLoopbackPorts(Client: { prototype: RedirectingClient }): void {
  const { prototype } = Client;
  const allowed = Reflect.get<RedirectingClient, 'redirectUriAllowed'>(prototype, 'redirectUriAllowed');
  prototype.redirectUriAllowed = function (this: RedirectingClient, uri: string): boolean {
    if (redirectUrl(uri) === null) return false;
    if (allowed.call(this, uri)) return true;
    return isLoopbackRedirect(uri) && this.redirectUris.some((each) => redirectKey(each) === redirectKey(uri));
  };
}

interface RedirectingClient {
  redirectUris: string[];
  redirectUriAllowed(uri: string): boolean;
}

export function isLoopbackRedirect(uri: string): boolean {
  const url = uri.includes('#') ? null : redirectUrl(uri);
  return url?.protocol === 'http:' && LOOPBACK_NAMES.has(url.hostname) && url.username === '' && url.password === '';
}

/**
 * Returns true for an exact https URI. Only consent for such a redirect URI can be remembered: any program on the user's machine can receive what is sent to loopback or to a
 * custom scheme.
 */
export function isExactHttps(uri: string): boolean {
  const url = uri.includes('#') ? null : redirectUrl(uri);
  return url?.protocol === 'https:' && !LOOPBACK_NAMES.has(url.hostname) && url.username === '' && url.password === '';
}

/**
 * Returns a key that is equal for redirect URIs with the same destination: for a loopback address, the port and the spelling of the host (`localhost`,
 * `127.0.0.1`, `[::1]`) do not matter. Any other redirect URI is its own key.
 */
export function redirectKey(uri: string): string {
  if (!isLoopbackRedirect(uri)) return uri;
  const { pathname, search } = new URL(uri);
  return `http://loopback${pathname}${search}`;
}

/** Parses a redirect URI that all parsers read alike; returns null for any other. Browsers read `https:host` as a path of Slipway. */
function redirectUrl(uri: string): URL | null {
  const url = AMBIGUOUS.test(uri) ? null : parseUrl(uri);
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isHttp && !/^https?:\/\/[^/]/i.test(uri) ? null : url;
}

function requireRedirect(uri: unknown, redirectHosts: readonly string[] | null): asserts uri is string {
  const url = typeof uri === 'string' ? redirectUrl(uri) : null;
  const quotedUri = JSON.stringify(String(uri).slice(0, 200));
  const refuse = (reason: string): never => {
    throw new ClientRefusedError('invalid_redirect_uri', `The redirect address ${quotedUri} is refused: ${reason}`);
  };
  if (url === null) return refuse('it is not a valid URL.');
  if (url.href.includes('#')) return refuse('it has a fragment (#).');
  if (url.username !== '' || url.password !== '') return refuse('it contains a user name or password.');
  if (url.protocol === 'http:' && !LOOPBACK_NAMES.has(url.hostname)) {
    return refuse('http is allowed to localhost, 127.0.0.1 and [::1] only; use https.');
  }
  // `loopback`, a host, or a custom scheme with its colon.
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:';
  const host = LOOPBACK_NAMES.has(url.hostname) ? 'loopback' : url.hostname;
  const entry = isHttp ? host : url.protocol;
  if (!isHttp && !url.protocol.includes('.') && !APP_SCHEMES.has(entry) && !redirectHosts?.includes(entry)) {
    refuse(
      `the scheme ${entry} leads to no app that is known here. Use https, a loopback address, or a scheme with a dot such as com.example.app:.`,
    );
  }
  if (redirectHosts !== null && !redirectHosts.includes(entry)) {
    refuse(`the operator lists the allowed ones in OAUTH_REDIRECT_HOSTS, and ${entry} is not among them.`);
  }
}
