import { ANONYMOUS, type Person } from '../../auth/access.types.js';
import { covers } from '../../auth/visible-servers.access.js';
import { isGuest } from '../../../platform/http/revocation-registry.js';
import type { ErrorReader } from '../../../platform/errors/domain-error.js';
import type { AuthorizationServer, AuthorizationTarget } from '../../../mcp/oauth/discovery.js';

/** The owner of a setup link, and the state of that owner for which it was made. */
export interface SetupLink {
  /** The kind of its owner. */
  kind: string;
  /** A UUID. The cookie of the browser is bound to it. */
  id: string;
  /** A change that ends the earlier links of the owner counts it up. Starts at 1. */
  epoch: number;
  holder: LinkHolder;
}

/** The account and the credential that a link was issued to. It ends with either, and with the account's right to `manage`. */
export interface LinkHolder {
  accountId: string;
  /** Id of the API key, of the browser session, or of the client authorization. */
  keyId: string;
  /** `accounts.logins_epoch` when it was issued: it expires when the logins of the account are ended. */
  loginsEpoch: number;
  /** True for a link that opens only in a browser that is signed in as the account. */
  needsSignIn?: boolean;
}

/**
 * The holder of the setup links that a caller reads; null for a caller that cannot `manage`, whether its account or its key lacks
 * the right.
 *
 * @param reader whose account or grant opened the target
 * @param namespace the name of the target's namespace
 */
export function linkHolderOf(reader: ErrorReader, namespace: string): LinkHolder | null {
  const { accountId, keyId, grant, scopes, loginsEpoch = 0 } = reader;
  const isManager = !isGuest(grant) && (scopes === null || covers(scopes, 'manage', namespace));
  return isManager && keyId !== ANONYMOUS.keyId ? { accountId, keyId, loginsEpoch } : null;
}

/** An owner of setup links. `Row` is what {@link open} reads and the others use. */
export interface SetupPageOwner<Row> {
  /** Reads the row behind a link whose signature is valid. @throws SetupPageError if the link was used or no longer exists */
  open(link: Pick<SetupLink, 'id' | 'epoch'>): Promise<Row>;
  /** True if the account of a link, with all its rights, can `manage` what the link is for. */
  mayUse(row: Row, person: Person): Promise<boolean>;
  /** Changes nothing: programs follow links too. @throws SetupPageError */
  view(row: Row): Promise<SetupView>;
  /**
   * Handles the form of the page.
   *
   * @param form empty for a page with a button only
   * @param cookie identifies the browser
   * @param holder whose link it is; an authorization that begins has the same
   * @throws SetupPageError
   */
  submit(row: Row, form: URLSearchParams, cookie: string, holder: LinkHolder): Promise<SetupAnswer>;
}

/** Tokens of the owners of setup links, by the kind in the link. */
export const pageOwners = {
  authorizations: Symbol('SetupPageOwner of authorizations'),
  connections: Symbol('SetupPageOwner of connections'),
};

/** The response to a form: a page (422 where nothing was stored, for a fault of the form), or a redirect to an authorization server, whose answer needs the cookie for `linkId`. */
export type SetupAnswer = { view: SetupView; status: 200 | 422 } | { redirect: string; linkId: string };

/** The content of a setup page. */
export type SetupView = SetupMessage | SetupResult | AuthorizeView | FormView;

/** A page without a form that says why there is nothing to do, or nothing can be done. */
export interface SetupMessage {
  kind: 'message';
  title: string;
  text: string;
  /** A technical detail for whoever is asked for help. */
  note?: string;
}

/** The page after an authorization was stored, or after values were stored that work. */
export interface SetupResult extends PageServer {
  kind: 'authorized' | 'connected';
}

/** The MCP server of a page. */
export interface PageServer {
  /** The identity of its connection or release, such as `acme/mail-ann`: a detail of the page. */
  label: string;
  /** The name of the connection, if it has one besides its id. */
  name?: string;
  /** For code that runs here the name of its server. */
  upstreamHost: string;
  /** The server's own name: as it reports it, as the registry displays it, or as its metadata say it. */
  title?: string;
  description?: string;
  /** An icon of this service, or a `data:` URL. */
  iconUrl?: string;
}

/** What people call the server of a page: the name of the connection, the server's own name, or its host. */
export function knownName({ name, title, upstreamHost }: Pick<PageServer, 'name' | 'title' | 'upstreamHost'>): string {
  return name || title || upstreamHost;
}

/** The hosts that take part in an authorization. */
export function participantsOf(
  upstreamUrl: string,
  { issuer, authorizationEndpoint, adapter }: AuthorizationServer,
): Pick<AuthorizeView, 'upstreamHost' | 'issuerHost' | 'signInHost'> {
  const signInHost = new URL(authorizationEndpoint).host;
  if (adapter !== undefined) return { upstreamHost: adapter, issuerHost: signInHost, signInHost };
  return { upstreamHost: new URL(upstreamUrl).host, issuerHost: new URL(issuer).host, signInHost };
}

/** The page in front of an authorization server, for the MCP server that people know as `page`. */
export function authorizeView(
  page: PageServer,
  upstreamUrl: string,
  { server, scopes }: Pick<AuthorizationTarget, 'server' | 'scopes'>,
): AuthorizeView {
  return { ...page, kind: 'authorize', ...participantsOf(upstreamUrl, server), scopes: scopes?.split(' ') ?? [] };
}

/** The page in front of an authorization server. */
export interface AuthorizeView extends PageServer {
  kind: 'authorize';
  issuerHost: string;
  /** Not always the issuer's own host. */
  signInHost: string;
  scopes: string[];
  /** What the owner of the connection chose; absent for other owners. */
  chosen?: { issuer?: string; clientId?: string };
  /** The epoch of the link that the button posts to; absent for the address of the page. */
  epoch?: number;
}

/** A form for values and for a client of an authorization server. It holds no stored value and no secret. */
export interface FormView extends PageServer {
  kind: 'form';
  /** The epoch of the link that the form posts to. */
  epoch: number;
  /** The reason for the form, in sentences. */
  reason: string;
  fields: SetupField[];
  /** Set where the person must enter a client. */
  client: ClientRequest | null;
  /** The error of the form as a whole, in a message; null without one. */
  fault: string | null;
  /** A technical detail for whoever is asked for help. */
  note?: string;
}

/** The names of the fields for a key or token in a header that the person names. */
export const keyFields = { name: 'key.header', value: 'key.value' } as const;

/** One value of a form. */
export interface SetupField {
  /** In the form, such as `headers.X-Token`. */
  name: string;
  label: string;
  description?: string;
  isRequired: boolean;
  /** Shown as a password field. */
  isSecret: boolean;
  /** The only values it may have; null for any. */
  allowed: string[] | null;
  /** The control where any value is allowed; `lines` for long text. */
  control: 'line' | 'lines' | 'number' | 'integer' | 'date' | 'email' | 'url';
  /** HTML attributes for the limits of the value. */
  limits: Partial<Record<'min' | 'max' | 'minlength' | 'maxlength', number>>;
  /** The default, which the form shows where no value is stored; undefined without one and for a secret. */
  fallback?: string;
  /** A value is stored; an empty field keeps it. */
  isStored: boolean;
  /** The value of the form before, which is shown again; null for a secret, which must be entered again. */
  entered?: string | null;
  /** The error of the value, in a message; null without one. */
  fault: string | null;
}

/** The data with which a person registers a client at an authorization server. */
export interface ClientRequest {
  /** As the metadata of the authorization server spells it. */
  issuer: string;
  redirectUri: string;
  /**
   * `unneeded`: Slipway has a client there or can register one. `lacking`: it cannot. `given`: the owner has a
   * pre-registered one, which may be used further. `refused`: the server did not accept that one.
   */
  state: 'unneeded' | 'lacking' | 'given' | 'refused';
  /** The client ID of the form before, and whether a secret was entered with it. */
  entered?: { id: string; hasSecret: boolean };
}
