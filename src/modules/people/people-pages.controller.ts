import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { ForbiddenError, TooManyError } from '../../platform/errors/domain-error.js';
import { rejectionOf, respondToForm, type RejectedForm } from '../../platform/pages/forms.js';
import { FramedPage, noticeOf, PlainPage, Redirect } from '../../platform/pages/frame.js';
import {
  CurrentPage,
  Form,
  Page,
  PublicPage,
  type PageRequest,
  type PublicPageRequest,
} from '../auth/access.decorator.js';
import type { SessionCaller } from '../auth/access.types.js';
import { UnauthenticatedError } from '../auth/auth.errors.js';
import { AccountsService } from '../auth/accounts.service.js';
import { MembersService } from '../auth/members.service.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import { InvitationsService } from './invitations.service.js';
import { PasswordsService } from './passwords.service.js';
import { OwnKeysService } from './own-keys.service.js';
import { invitationPage, joinPage, mePage, signedOutPage } from './people-pages.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** Messages by the word in the address after a form. Without a word, a password was saved. */
const DONE: Record<string, string> = {
  '': 'Your password is saved. All other browsers are signed out.',
  revoked: 'The key is revoked. What used it is refused.',
  browser: 'The browser is signed out.',
  left: 'You have left the organization.',
  zone: 'Times are shown in this zone now.',
};

@ApiExcludeController()
@Controller()
export class PeoplePagesController {
  constructor(
    private readonly env: Env,
    private readonly requestLimits: RequestLimits,
    private readonly sessionsService: SessionsService,
    private readonly signInService: SignInService,
    private readonly passwordsService: PasswordsService,
    private readonly invitationsService: InvitationsService,
    private readonly ownKeysService: OwnKeysService,
    private readonly membersService: MembersService,
    private readonly accountsService: AccountsService,
  ) {}

  /** Shows the form, and redirects users who are signed in. */
  @Get('login')
  @PublicPage()
  async showLogin(@CurrentPage() { client, query }: PublicPageRequest): Promise<PlainPage | Redirect> {
    const { next } = query;
    const isSignedIn = (await this.sessionsService.current(client)) !== null;
    return isSignedIn ? this.signInService.redirect(next) : this.signInService.page({ next });
  }

  /** Signs in with a password or an API key. */
  @Post('login')
  @PublicPage()
  async login(
    @CurrentPage() { client, form }: PublicPageRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PlainPage | Redirect> {
    const next = form.get('next');
    try {
      return this.signInService.redirect(next, await this.signInService.signIn(client, form));
    } catch (thrown) {
      const error = await this.requestLimits.refusal(thrown, request, response);
      const isBusy = error instanceof TooManyError;
      if (!isBusy && !(error instanceof UnauthenticatedError || error instanceof ForbiddenError)) throw error;
      if (isBusy) response.set('retry-after', String(error.retryAfterSeconds));
      const rejected = rejectionOf(form.has('key') ? 'key' : 'password', form, error);
      return this.signInService.page({ next, rejected }, isBusy ? 429 : 403);
    }
  }

  /** Signs this browser out, or with the field `everywhere` all browsers of the person. */
  @Post('logout')
  @PublicPage()
  async logout(@CurrentPage() { client, form }: PublicPageRequest): Promise<Redirect | PlainPage> {
    const links = await this.signInService.signOutLinks(client);
    const isEverywhere = form.has('everywhere');
    const cookie = await (isEverywhere
      ? this.sessionsService.endEverywhere(client)
      : this.sessionsService.signOut(client));
    if (links.length > 0) return new PlainPage(() => signedOutPage(this.env, links), 200, [cookie]);
    return new Redirect('login', [cookie]);
  }

  /** Shows who is signed in. */
  @Get('me')
  @Page('accounts:read')
  showMe(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    return this.renderMe(page);
  }

  /** Changes the password. */
  @Post('me')
  @Form('accounts:write')
  changePassword(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'me', async ({ client, person, form }) => {
      await this.passwordsService.change(client, person, form);
      return new Redirect('me?saved');
    });
  }

  /** Creates an API key of the person, which the page shows once. */
  @Post('me/keys/create')
  @Form('accounts:write')
  createKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'create', async ({ person, form }) => {
      return new Redirect('me', [], await this.ownKeysService.make(person, form));
    });
  }

  /** Replaces an API key of the person. The page shows the new one once. */
  @Post('me/keys/rotate')
  @Form('accounts:write')
  rotateKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'rotate', async ({ person, form }) => {
      return new Redirect('me', [], await this.ownKeysService.rotate(person, form));
    });
  }

  @Post('me/zone')
  @Form('accounts:write')
  setTimeZone(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'zone', async ({ person, form }) => {
      await this.accountsService.setTimeZone(person, { timeZone: form.get('timeZone')?.trim() || null });
      return new Redirect('me?saved=zone');
    });
  }

  @Post('me/keys/revoke')
  @Form('accounts:write')
  revokeKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'revoke', async ({ person, form }) => {
      await this.ownKeysService.revoke(person, form);
      return new Redirect('me?saved=revoked');
    });
  }

  /** Signs one browser of the person out. */
  @Post('me/browsers')
  @Form('accounts:write')
  async endBrowser(@CurrentPage() { form, person }: PageRequest): Promise<Redirect> {
    const id = form.get('browser');
    if (isUUID(id)) await this.sessionsService.endById(person, String(id), person.accountId);
    return new Redirect('me?saved=browser');
  }

  /** Shows the form without using the link, which programs might open that check links in mails. */
  @Get('invite')
  @PublicPage()
  async showInvitation(@CurrentPage() page: PublicPageRequest): Promise<PlainPage> {
    return this.renderInvitation(page, await this.sessionsService.current(page.client));
  }

  /** Sets the password, and signs in; or joins the organization. */
  @Post('invite')
  @PublicPage()
  async accept(@CurrentPage() page: PublicPageRequest): Promise<PlainPage | Redirect> {
    const { query, client, form } = page;
    const person = await this.sessionsService.current(client);
    const work = () => this.invitationsService.use(query.token, client, form, person);
    return respondToForm('invite', form, work, (rejected) => this.renderInvitation(page, person, rejected));
  }

  private async renderInvitation(
    { query, originalUrl: next }: PublicPageRequest,
    person: SessionCaller | null,
    rejected?: RejectedForm,
  ): Promise<PlainPage> {
    const { accountName, role } = await this.invitationsService.open(query.token);
    return new PlainPage((token) =>
      role === null
        ? invitationPage(this.env, { token: token(), accountName, rejected })
        : joinPage(this.env, { token: token(), organization: accountName, role, person, rejected, next }),
    );
  }

  private respond(page: PageRequest, name: string, work: (page: PageRequest) => Promise<Redirect>) {
    return respondToForm(
      name,
      page.form,
      () => work(page),
      (rejected) => this.renderMe(page, rejected),
    );
  }

  private async renderMe({ person, query, once }: PageRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const [sessions, ownKeys, { memberships }, parts] = await Promise.all([
      this.sessionsService.list(person.accountId),
      this.ownKeysService.list(person),
      this.membersService.organizationsOf(person.accountId),
      Promise.all(this.signInService.ways.map((way) => way.accountPart(person))),
    ]);
    const notice = noticeOf(query.saved, DONE);
    return new FramedPage((token, root) => {
      const ways = parts.map((part) => part(token, root));
      const view = { ...person, token, root, sessions, ...ownKeys, memberships, notice, once, rejected, ways };
      return mePage({ ...view, hasPasswords: !this.passwordsService.isOff });
    });
  }
}
