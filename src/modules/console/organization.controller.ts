/**
 * `/ui/o/{name}`: an organization, by its name or its id. A guest sees its own role, a member who else there is, an editor also
 * namespaces and requests for access, an owner everything. The operator manages members and keys. For everybody else it looks like
 * one that does not exist.
 *
 * Every form posts here and names in `do` what shall be done; a refused one is shown again with the sentence of the refusal. The
 * link of an invitation, a new key and the names of the keys of a removed member are shown in the answer to their form alone.
 */
import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { DomainError, InvalidInputError, statusOf } from '../../platform/errors/domain-error.js';
import { noticeOf, sendFramed } from '../../platform/pages/frame.js';
import { html } from '../../platform/pages/html.js';
import { redirectTo, rootFrom } from '../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../auth/access.decorator.js';
import { AccessService } from '../auth/access.service.js';
import { roles, type Role, type SessionCaller } from '../auth/access.types.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { MembersService } from '../auth/members.service.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { GrantsService } from '../grants/grants.service.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';
import { InvitationsService } from '../people/invitations.service.js';
import { OwnKeysService } from '../people/own-keys.service.js';
import { toQualifiedName } from '../servers/server.decorator.js';
import { faultOf } from './forms.page.js';
import { DONE, organizationPage, type OrganizationView } from './organization.page.js';

/** The outcome of a form: the word of a sentence, or values that are shown once. */
type Outcome = keyof typeof DONE | 'left' | Pick<OrganizationView, 'invitation' | 'made' | 'notice'>;

/** The page of an organization. */
@Controller('ui/o/:name')
export class OrganizationController {
  constructor(
    private readonly env: Env,
    private readonly accessService: AccessService,
    private readonly membersService: MembersService,
    private readonly invitationsService: InvitationsService,
    private readonly namespacesService: NamespacesService,
    private readonly apiKeysService: ApiKeysService,
    private readonly ownKeysService: OwnKeysService,
    private readonly grantsService: GrantsService,
    private readonly accessRequestsService: AccessRequestsService,
  ) {}

  @Get()
  @Page('accounts:read')
  async show(
    @CurrentPerson() person: SessionCaller,
    @Param('name') name: string,
    @Query() { done, page }: Record<string, unknown>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const options = { page: Math.trunc(Number(page)) || 1, notice: noticeOf(done, DONE) };
    await this.send(request, response, person, name, options);
  }

  @Post()
  @Page('accounts:write')
  async change(
    @CurrentPerson() person: SessionCaller,
    @Param('name') name: string,
    @SentForm() form: URLSearchParams,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const organization = await this.membersService.find(person, name);
    let view: Partial<OrganizationView> & { status?: number };
    try {
      const outcome = organization && (await this.apply(person, organization.id, form));
      if (outcome === 'left') return redirectTo(response, `${rootFrom(request.path)}me?saved=left`);
      if (typeof outcome === 'string') {
        return redirectTo(response, `${rootFrom(request.path)}ui/o/${encodeURIComponent(name)}?done=${outcome}`);
      }
      view = outcome ?? {};
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      view = { fault: faultOf(form, error), status: statusOf[error.kind] };
    }
    await this.send(request, response, person, name, view);
  }

  /** Does what a form asks for. The rules are those of the routes of REST. @throws DomainError */
  private async apply(person: SessionCaller, id: string, form: URLSearchParams): Promise<Outcome> {
    const field = (name: string) => form.get(name)?.trim() ?? '';
    const of = field('id');
    switch (field('do')) {
      case 'claim':
        await this.namespacesService.claim(field('namespace'), person, id);
        return 'claimed';
      case 'grant':
        await this.accessRequestsService.decideOn(toQualifiedName(field('server')), of, person, {
          grant: { level: 'call' },
        });
        return 'granted';
      case 'refuse':
        if (field('refuse') === '') throw new InvalidInputError('Write a reason for the requester');
        await this.accessRequestsService.decideOn(toQualifiedName(field('server')), of, person, {
          refuse: field('refuse'),
        });
        return 'refused';
      case 'leave':
        requireName(form);
        await this.membersService.remove(person, {
          organizationId: id,
          accountId: person.accountId,
          revokeKeys: false,
        });
        return 'left';
    }
    await this.accessService.authorize(
      person,
      { scope: 'accounts:write', account: 'organizationId', ownersOnly: true },
      { account: id },
    );
    const task = field('do');
    if (task === 'invite') return { invitation: await this.invitationsService.inviteMember(id, roleIn(form), person) };
    if (task === 'key') return { made: await this.ownKeysService.make(person, id, form) };
    if (!isUUID(of)) throw new InvalidInputError('This form is not known: open the page again');
    switch (task) {
      case 'role':
        await this.membersService.set(person, id, of, roleIn(form));
        return 'role';
      case 'remove': {
        requireName(form);
        const revokeKeys = form.has('revokeKeys');
        const removed = await this.membersService.remove(person, { organizationId: id, accountId: of, revokeKeys });
        return { notice: html`${field('expected')} is removed. ${keysLeft(removed)}` };
      }
      case 'revoke':
        requireName(form);
        await this.apiKeysService.revoke(person, id, of, {});
        return 'revoked';
      case 'end':
        await this.grantsService.removeGiven(id, person, of);
        return 'ended';
    }
    throw new InvalidInputError('This form is not known: open the page again');
  }

  private async send(
    request: Request,
    response: Response,
    person: SessionCaller,
    name: string,
    { status = 200, page = 1, ...rest }: Partial<OrganizationView> & { status?: number; page?: number },
  ): Promise<void> {
    const organization = await this.membersService.find(person, name);
    if (!organization) {
      const body = html`<p role="alert">There is no organization of this name that you are a member of.</p>`;
      return sendFramed(this.env, request, response, person.accountName, () => ({ title: 'Nothing here', body }), 404);
    }
    const { id, role } = organization;
    const all = { page: 1, pageSize: 100 };
    const isOwner = role === 'owner';
    const isMember = person.memberships.has(id);
    const asOperator = person.isOperator && !isMember;
    const isEditor = !asOperator && (isOwner || role === 'editor');
    const view = {
      ...organization,
      ...rest,
      isMember,
      asOperator,
      members:
        role === 'guest' ? null : await this.membersService.list(person, id, { ...all, page: Math.max(1, page) }),
      invited: isOwner ? (await this.membersService.invitations(id, all)).invitations : null,
      namespaces: isEditor ? (await this.namespacesService.list(person, { ...all, ownerId: id })).namespaces : null,
      requests: isEditor ? await this.accessRequestsService.list({ deciderId: id }, all) : null,
      keys: isOwner ? (await this.apiKeysService.list(id)).apiKeys : null,
      grants: isOwner && !asOperator ? await this.grantsService.listGiven(id, all) : null,
    };
    sendFramed(
      this.env,
      request,
      response,
      person.accountName,
      (token) => organizationPage({ ...view, token }),
      status,
    );
  }
}

function roleIn(form: URLSearchParams): Role {
  const role = roles.find((candidate) => candidate === form.get('role'));
  if (!role) throw new InvalidInputError('Choose a role');
  return role;
}

function requireName(form: URLSearchParams): void {
  if (form.get('typed')?.trim() !== form.get('expected')?.trim()) {
    throw new InvalidInputError('The name that you typed is another one: nothing was changed');
  }
}

function keysLeft({ keys, revoked }: { keys: { name: string }[]; revoked: boolean }) {
  if (keys.length === 0) return null;
  const names = keys.map(({ name }) => name).join(', ');
  return revoked
    ? html`Keys of the organization that were revoked: ${names}.`
    : html`Keys of the organization that this person made go on working: ${names}.`;
}
