import { Injectable, type OnModuleInit } from '@nestjs/common';
import {
  button,
  card,
  type ClientContext,
  Env,
  formOf,
  html,
  type Html,
  Identities,
  InjectSettings,
  list,
  readOwnCookie,
  Redirect,
  RedirectAway,
  Secrets,
  type SessionCaller,
  timeOf,
} from '../../extension.js';
import { IdentitiesRepository, type SigningIn } from './identities.repository.js';
import { identityOf } from './identity.js';
import { IdentityChecksService } from './identity-checks.service.js';
import { type Checks, IssuerService } from './issuer.service.js';
import { noPendingSignIn, notAdmitted, SignInError } from './oidc-errors.js';
import { MODULE, oidcSettingsSchema, type OidcSettings } from './oidc-settings.js';

const COOKIE = 'oidc';

const PENDING_SECONDS = 600;

/** Maximum length of an ID token that a sign-out sends back in a URL. */
const HINT_CHARS_MAX = 4_096;

interface Pending extends Checks {
  next: string | null;
  /** The account to add the identity to; null to sign in. */
  accountId: string | null;
  /** Time in milliseconds since 1970. */
  until: number;
}

@Injectable()
export class OidcSignInService implements OnModuleInit {
  constructor(
    private readonly env: Env,
    @InjectSettings(oidcSettingsSchema) private readonly oidcSettings: OidcSettings,
    private readonly identities: Identities,
    private readonly identitiesRepository: IdentitiesRepository,
    private readonly identityChecksService: IdentityChecksService,
    private readonly issuerService: IssuerService,
    private readonly secrets: Secrets,
  ) {}

  async onModuleInit(): Promise<void> {
    this.identities.addWay({
      name: 'oidc',
      label: `Sign in with ${this.issuerService.name}`,
      problem: () => this.issuerService.problem(),
      signOut: (person) => this.signOutLink(person),
      accountPart: (person) => this.accountPart(person),
    });
    if (this.oidcSettings.OIDC_ONLY === 'on') await this.identities.requireOnly();
  }

  /** @param person who links an identity; null: signs in. @throws SignInError */
  async begin(client: ClientContext, next: string | null, person: SessionCaller | null): Promise<Redirect> {
    this.requireNoKey(person);
    this.identities.admitStart(client);
    const accountId = person?.accountId ?? null;
    const { url, checks } = await this.issuerService.authorizationUrl().catch(this.leadBack(accountId));
    const pending: Pending = { ...checks, next, accountId, until: Date.now() + PENDING_SECONDS * 1_000 };
    const value = this.secrets.seal(MODULE, JSON.stringify(pending), COOKIE);
    return new RedirectAway(url, [{ name: COOKIE, value, seconds: PENDING_SECONDS }]);
  }

  /**
   * @param search the query of the issuer's response
   * @throws SignInError
   */
  async finish(client: ClientContext, cookies: string | undefined, search: string): Promise<Redirect> {
    const forgive = await this.identities.admitAttempt(client);
    const pending = this.pendingIn(readOwnCookie(this.env, cookies, COOKIE));
    const state = new URLSearchParams(search).get('state');
    if (!pending || pending.until < Date.now() || state !== pending.state)
      throw noPendingSignIn().setTryAgainUrl(this.backUrl(null));
    const { accountId } = pending;
    const redirect = await this.confirm(client, search, pending).catch(this.leadBack(accountId));
    await forgive();
    redirect.cookies.push({ name: COOKIE, value: '', seconds: 0 });
    return redirect;
  }

  /** @param id issuer and subject @throws SignInError for the last way to sign in */
  async unlink(person: SessionCaller, id: string): Promise<Redirect> {
    this.requireNoKey(person);
    const { OIDC_ISSUER, OIDC_ONLY } = this.oidcSettings;
    const [issuer = '', subject = ''] = id.split(/ (.*)/s);
    const current = { issuer: OIDC_ISSUER, hasPasswords: OIDC_ONLY === 'off' };
    const hasOther = await this.identitiesRepository.unlink({ issuer, subject }, person, current);
    if (hasOther === null) throw lastWay().setTryAgainUrl(this.backUrl(person.accountId));
    if (!hasOther) await this.identities.setMemberships(person.accountId, MODULE, new Map());
    return new Redirect('me');
  }

  private async confirm(client: ClientContext, search: string, pending: Pending): Promise<Redirect> {
    const { claims, refreshToken, idToken } = await this.issuerService.confirm(search, pending);
    const identity = identityOf(claims);
    const owner = `${identity.issuer} ${identity.subject}`;
    const seal = (token: string | null) => token && this.secrets.seal(MODULE, token, owner);
    const signingIn = {
      ...identity,
      refreshToken: seal(refreshToken),
      idToken: seal(idToken !== null && idToken.length <= HINT_CHARS_MAX ? idToken : null),
    };
    if (pending.accountId !== null) return this.link(client, pending.accountId, signingIn);
    const accountId = await this.identitiesRepository.signIn(signingIn, (tx) => {
      this.admit(signingIn);
      return this.identities.createAccount(identity.accountName, tx);
    });
    await this.identityChecksService.applyGroups(accountId, claims);
    const { OIDC_SESSION_HOURS: hours } = this.oidcSettings;
    return this.identities.signIn(client, accountId, { hours, next: pending.next });
  }

  private async link(client: ClientContext, accountId: string, identity: SigningIn): Promise<Redirect> {
    const person = await this.identities.signedIn(client);
    // eslint-disable-next-line no-restricted-syntax -- Another user who signed in meanwhile did not request the link.
    if (person?.accountId !== accountId) throw noPendingSignIn();
    if (person.rootKeyId !== undefined) throw keySession();
    if (!(await this.identitiesRepository.link(identity, person))) {
      throw notAdmitted(
        'This identity has an account already',
        `${identity.name} signs in to another account of this service. Nothing was changed.`,
      );
    }
    return new Redirect('me');
  }

  /** @throws SignInError for an identity that cannot have an account */
  private admit({ name, domain }: SigningIn): void {
    const { OIDC_SIGN_UP, OIDC_DOMAINS } = this.oidcSettings;
    const title = 'You have no account here';
    if (OIDC_SIGN_UP === 'off') {
      const message = `No account is linked to ${name}. Sign in another way and link it on your account page, or ask the operator.`;
      throw notAdmitted(title, message);
    }
    if (OIDC_DOMAINS.length > 0 && (domain === null || !OIDC_DOMAINS.includes(domain))) {
      const message = `${name} is not a verified address of ${OIDC_DOMAINS.join(' or ')}. Sign in with another one, or ask the operator for an account.`;
      throw notAdmitted(title, message);
    }
  }

  private pendingIn(sealed: string | undefined): Pending | null {
    try {
      return sealed ? (JSON.parse(this.secrets.open(MODULE, sealed, COOKIE)) as Pending) : null;
    } catch {
      return null;
    }
  }

  private requireNoKey(person: SessionCaller | null): void {
    if (person?.rootKeyId !== undefined) throw keySession().setTryAgainUrl(this.backUrl(person.accountId));
  }

  private leadBack(accountId: string | null) {
    return (error: unknown): never => {
      throw error instanceof SignInError ? error.setTryAgainUrl(this.backUrl(accountId)) : error;
    };
  }

  private backUrl(accountId: string | null): string {
    return `${this.env.baseUrl}/${accountId === null ? 'login' : 'me'}`;
  }

  private async signOutLink({ accountId, rootKeyId }: SessionCaller): Promise<{ label: string; url: string } | null> {
    const { OIDC_ISSUER } = this.oidcSettings;
    const last = rootKeyId === undefined ? await this.identitiesRepository.findLast(accountId, OIDC_ISSUER) : null;
    if (!last) return null;
    const idToken = last.idToken && this.secrets.open(MODULE, last.idToken, `${OIDC_ISSUER} ${last.subject}`);
    const url = await this.issuerService.signOutUrl(idToken);
    return url === null ? null : { label: `Also sign out at ${this.issuerService.name}`, url };
  }

  private async accountPart({ accountId, rootKeyId }: SessionCaller): Promise<(token: Html, root: string) => Html> {
    const { name } = this.issuerService;
    const identities = await this.identitiesRepository.list(accountId);
    return (token, root) => {
      const view = { token, address: `${root}login/oidc` };
      const isKey = rootKeyId !== undefined;
      const rows = identities.map((identity) => {
        const summary = html`${identity.name}<p>last signed in ${timeOf(identity.signedInAt.toISOString())}</p>`;
        const unlink = button(html`Unlink<span class="hidden"> ${identity.name}</span>`);
        return [
          summary,
          !isKey && formOf(view, 'unlink', [], unlink, { id: `${identity.issuer} ${identity.subject}` }),
        ] as const;
      });
      const form = formOf(view, 'link', [], button(`Link your identity at ${name}`));
      const hint = html`<p>You signed in with an API key, which links no identity.</p>`;
      return card('oidc', name, html`${rows.length > 0 && list(rows)}${isKey ? hint : form}`);
    };
  }
}

/** Returns the rejection of a session that began with a key: an identity outlives the key, so its holder could sign in indefinitely. */
function keySession(): SignInError {
  return notAdmitted(
    'Sign in with your password',
    'You signed in with an API key, which changes no identity of an account.',
  );
}

function lastWay(): SignInError {
  const message = 'Without it, you could not sign in. Link another identity first, or ask the operator for a password.';
  return notAdmitted('This identity stays linked', message);
}
