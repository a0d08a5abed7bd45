import { ANONYMOUS, type Person } from '../../auth/access.types.js';
import { covers } from '../../auth/visible-servers.access.js';
import { isGuest } from '../../../platform/http/revocation-registry.js';
import type { ErrorReader } from '../../../platform/errors/domain-error.js';
import type { AuthorizationServer, AuthorizationTarget } from '../../../mcp/oauth/discovery.js';

export interface SetupLink {
  kind: string;
  /** A UUID to which the cookie of the browser is bound. */
  id: string;
  /** Starts at 1. A change that invalidates the owner's earlier links increments it. */
  epoch: number;
  holder: LinkHolder;
}

/**
 * The account and the credential that a link was issued to. The link is invalid once either is, or the account loses the right to `manage`.
 */
export interface LinkHolder {
  accountId: string;
  keyId: string;
  /** `accounts.logins_epoch` at issue: the link is invalid once the account's sign-ins are revoked. */
  loginsEpoch: number;
  /** True for a link that opens only in a browser that is signed in as the account. */
  needsSignIn?: boolean;
}

/**
 * @returns null for a caller that cannot `manage`, whether its account or its key lacks the right
 *
 * @param reader whose account or grant opened the target
 * @param namespace the name of the target's namespace
 */
export function linkHolderOf(reader: ErrorReader, namespace: string): LinkHolder | null {
  const { accountId, keyId, grant, scopes, loginsEpoch = 0 } = reader;
  const isManager = !isGuest(grant) && (scopes === null || covers(scopes, 'manage', namespace));
  return isManager && keyId !== ANONYMOUS.keyId ? { accountId, keyId, loginsEpoch } : null;
}

/** The owner of setup pages. `Row` is the result of {@link open}, and the input of the other methods. */
export interface SetupPageOwner<Row> {
  /** Reads the row behind a link whose signature is valid. @throws SetupPageError if the link was used or no longer exists */
  open(link: Pick<SetupLink, 'id' | 'epoch'>): Promise<Row>;
  /** Returns true if the account of a link, with all its rights, can `manage` the target of the link. */
  mayUse(row: Row, person: Person): Promise<boolean>;
  /** Returns the page without changing anything, since programs also follow links. @throws SetupPageError */
  view(row: Row): Promise<SetupView>;
  /**
   * @param form empty for a page with a button only
   * @param cookie identifies the browser
   * @param holder of the link; an authorization that begins gets the same holder
   * @throws SetupPageError
   */
  submit(row: Row, form: URLSearchParams, cookie: string, holder: LinkHolder): Promise<SetupAnswer>;
}

/** Tokens of the owners of setup links, by the kind in the link. */
export const pageOwners = {
  authorizations: Symbol('SetupPageOwner of authorizations'),
  connections: Symbol('SetupPageOwner of connections'),
};

/**
 * The response to a form: a page (422 for an invalid form, where nothing was stored), or a redirect to an authorization server, whose
 * response needs the cookie for `linkId`.
 */
export type SetupAnswer = { view: SetupView; status: 200 | 422 } | { redirect: string; linkId: string };

export type SetupView = SetupMessage | SetupResult | AuthorizeView | FormView;

/** The page explains that no step is needed, or none is possible. */
export interface SetupMessage {
  kind: 'message';
  title: string;
  text: string;
  note?: string;
}

/** The page after an authorization or working values were stored. */
export interface SetupResult extends PageServer {
  kind: 'authorized' | 'connected';
}

export interface PageServer {
  /** A detail of the page, such as `acme/mail-ann`. */
  label: string;
  name?: string;
  /** The name of the server stands for the host of hosted code. */
  upstreamHost: string;
  /** The server's own name: as it reports it, as the registry displays it, or from its metadata. */
  title?: string;
  description?: string;
  /** URL of one of our icons, or a `data:` URL. */
  iconUrl?: string;
}

/**
 * Returns the name by which users know the server of a page: the name of the connection, the server's own name, or its
 * host.
 */
export function knownName({ name, title, upstreamHost }: Pick<PageServer, 'name' | 'title' | 'upstreamHost'>): string {
  return name || title || upstreamHost;
}

export function participantsOf(
  upstreamUrl: string,
  { issuer, authorizationEndpoint, adapter }: AuthorizationServer,
): Pick<AuthorizeView, 'upstreamHost' | 'issuerHost' | 'signInHost'> {
  const signInHost = new URL(authorizationEndpoint).host;
  if (adapter !== undefined) return { upstreamHost: adapter, issuerHost: signInHost, signInHost };
  return { upstreamHost: new URL(upstreamUrl).host, issuerHost: new URL(issuer).host, signInHost };
}

/** Returns the page of an authorization. @param page the MCP server as users know it */
export function authorizeView(
  page: PageServer,
  upstreamUrl: string,
  { server, scopes }: Pick<AuthorizationTarget, 'server' | 'scopes'>,
): AuthorizeView {
  return { ...page, kind: 'authorize', ...participantsOf(upstreamUrl, server), scopes: scopes?.split(' ') ?? [] };
}

export interface AuthorizeView extends PageServer {
  kind: 'authorize';
  issuerHost: string;
  /** Host of the sign-in, not always the issuer's own host. */
  signInHost: string;
  scopes: string[];
  /** The owner's choice; absent for owners other than connections. */
  chosen?: { issuer?: string; clientId?: string };
  /** Epoch in the address of the button; absent if it posts to the address of the page. */
  epoch?: number;
}

/** A form for values and for a client of an authorization server. It contains no stored value and no secret. */
export interface FormView extends PageServer {
  kind: 'form';
  epoch: number;
  reason: string;
  fields: SetupField[];
  /** Set only where the user must enter a client. */
  client: ClientRequest | null;
  /** The error of the form as a whole; null without one. */
  fault: string | null;
  note?: string;
}

/** The fields of a key or token in a header that the user names. */
export const keyFields = { name: 'key.header', value: 'key.value' } as const;

export interface SetupField {
  /** The name in the form, such as `headers.X-Token`. */
  name: string;
  label: string;
  description?: string;
  isRequired: boolean;
  isSecret: boolean;
  /** The only allowed values; null for any. */
  allowed: string[] | null;
  /** Control of a field in which any value is allowed; `lines` is for long text. */
  control: 'line' | 'lines' | 'number' | 'integer' | 'date' | 'email' | 'url';
  limits: Partial<Record<'min' | 'max' | 'minlength' | 'maxlength', number>>;
  /** The form shows it where no value is stored; undefined without one and for a secret. */
  fallback?: string;
  /** True if a value is stored, which an empty field keeps. */
  isStored: boolean;
  /** The page shows it again; null for a secret, which must be entered again. */
  entered?: string | null;
  fault: string | null;
}

export interface ClientRequest {
  /** Issuer, spelt as in the metadata of the authorization server. */
  issuer: string;
  redirectUri: string;
  /**
   * `unneeded`: Slipway has a client there or can register one. `lacking`: it cannot. `given`: the owner has a pre-registered one, which
   * remains usable. `refused`: the server rejected that one.
   */
  state: 'unneeded' | 'lacking' | 'given' | 'refused';
  entered?: { id: string; hasSecret: boolean };
}
