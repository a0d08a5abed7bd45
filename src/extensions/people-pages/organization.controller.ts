/**
 * `/ui/o/{name}`: an organization, by its name or its id. A guest sees its own role, a member all members, an editor
 * also namespaces and access requests, an owner everything. Operators manage members and keys. For everybody else it
 * returns 404.
 *
 * Each form has an address under the page, with the id of the organization; a rejected one is shown again with the
 * reason. An invitation link, a new key and the names of a removed member's keys are shown once.
 */
import { Controller, Get, Post } from '@nestjs/common';
import { isUUID } from 'class-validator';
import {
  Accounts,
  CurrentPage,
  Form,
  FramedPage,
  Grants,
  InvalidInputError,
  Namespaces,
  newKeyOf,
  NotFoundError,
  noticeOf,
  Page,
  Redirect,
  respondToForm,
  roles,
  type MemberRole,
  type PageRequest,
  type RejectedForm,
  type ShownOnce,
} from '../../extension.js';
import { DONE, organizationPage } from './organization.page.js';

/** The rules of the REST routes for every member, and for owners only. */
const ofMembers = { account: 'organization', may: 'own', member: true } as const;
const ofOwners = { account: 'organization', may: 'own' } as const;

type OrganizationRequest = PageRequest<{ organization: string }>;

/** The outcome of a form: a key of {@link DONE}, or values that are shown once. */
type Outcome = keyof typeof DONE | Redirect | ShownOnce;

@Controller('ui/o/:organization')
export class OrganizationController {
  constructor(
    private readonly accounts: Accounts,
    private readonly grants: Grants,
    private readonly namespaces: Namespaces,
  ) {}

  @Get()
  @Page('accounts:read')
  show(@CurrentPage() page: OrganizationRequest): Promise<FramedPage> {
    return this.render(page);
  }

  @Post('claim')
  @Form('namespaces:write', ofMembers)
  claim(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'claim', async ({ form, person }, organizationId) => {
      const name = form.get('namespace')?.trim() ?? '';
      await this.namespaces.claim(person, name, { organizationId, move: form.has('move') });
      return 'claimed';
    });
  }

  @Post('leave')
  @Form('accounts:write', ofMembers)
  leaveOrganization(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'leave', async ({ form, person }, organizationId) => {
      requireName(form);
      await this.accounts.removeMember(person, organizationId, person.accountId);
      return new Redirect('me?saved=left');
    });
  }

  @Post('invite')
  @Form('accounts:write', ofOwners)
  invite(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'invite', async ({ form, person }, organizationId) => {
      const role = roleIn(form);
      return { role, ...(await this.accounts.inviteMember(person, organizationId, role)) };
    });
  }

  @Post('key')
  @Form('accounts:write', ofOwners)
  makeKey(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'key', async ({ form, person }, organizationId) => {
      const { name, key } = await this.accounts.createKey(person, organizationId, newKeyOf(form));
      return { name, key };
    });
  }

  @Post('role')
  @Form('accounts:write', ofOwners)
  setRole(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'role', async ({ form, person }, organizationId) => {
      await this.accounts.setMember(person, organizationId, rowIn(form), roleIn(form));
      return 'role';
    });
  }

  @Post('uninvite')
  @Form('accounts:write', ofOwners)
  uninvite(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'uninvite', async ({ form, person }, organizationId) => {
      await this.accounts.revokeMemberInvitation(person, organizationId, rowIn(form));
      return 'uninvite';
    });
  }

  @Post('remove')
  @Form('accounts:write', ofOwners)
  remove(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'remove', async ({ form, person }, organizationId) => {
      const accountId = rowIn(form);
      requireName(form);
      const removed = await this.accounts.removeMember(person, organizationId, accountId, form.has('revokeKeys'));
      return { removed: `${form.get('expected')} is removed. ${keysLeft(removed)}` };
    });
  }

  @Post('revoke')
  @Form('accounts:write', ofOwners)
  revoke(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'revoke', async ({ form, person }, organizationId) => {
      const keyId = rowIn(form);
      requireName(form);
      await this.accounts.revokeKey(person, organizationId, keyId);
      return 'revoked';
    });
  }

  @Post('end')
  @Form('accounts:write', ofOwners)
  revokeGrant(@CurrentPage() page: OrganizationRequest) {
    return this.respond(page, 'end', async ({ form, person }, organizationId) => {
      await this.grants.revokeGiven(person, organizationId, rowIn(form));
      return 'ended';
    });
  }

  /** Runs the work of a form for an organization that the person can see. */
  private respond(
    page: OrganizationRequest,
    name: string,
    work: (page: OrganizationRequest, organizationId: string) => Promise<Outcome>,
  ): Promise<FramedPage | Redirect> {
    const run = async () => {
      const organization = await this.organizationOf(page);
      const outcome = await work(page, organization.id);
      if (outcome instanceof Redirect) return outcome;
      const path = `ui/o/${encodeURIComponent(organization.name)}`;
      return typeof outcome === 'string' ? new Redirect(`${path}?done=${outcome}`) : new Redirect(path, [], outcome);
    };
    return respondToForm(name, page.form, run, (rejected) => this.render(page, rejected));
  }

  private async organizationOf({ params, person }: OrganizationRequest) {
    const organization = await this.accounts.findOrganization(person, params.organization);
    if (!organization) throw new NotFoundError('Organization not found');
    return organization;
  }

  private async render(requested: OrganizationRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, query, once } = requested;
    const page = Math.trunc(Number(query.page)) || 1;
    const organization = await this.organizationOf(requested);
    const { id, role } = organization;
    const all = { page: 1, pageSize: 100 };
    const isOwner = role === 'owner';
    const isMember = person.memberships.has(id);
    const asOperator = person.isOperator && !isMember;
    const isEditor = !asOperator && (isOwner || role === 'editor');
    const view = {
      ...organization,
      notice: once?.removed ?? noticeOf(query.done, DONE),
      once,
      rejected,
      isMember,
      asOperator,
      members: role === 'guest' ? null : await this.accounts.members(person, id, { ...all, page: Math.max(1, page) }),
      invited: isOwner ? (await this.accounts.memberInvitations(person, id, all)).invitations : null,
      namespaces: isEditor ? (await this.namespaces.list(person, { ...all, ownerId: id })).namespaces : null,
      requests: isEditor ? await this.grants.listRequests(person, id, all) : null,
      keys: isOwner ? (await this.accounts.keys(person, id)).apiKeys : null,
      grants: isOwner && !asOperator ? await this.grants.listGiven(person, id, all) : null,
    };
    return new FramedPage((token, root) => organizationPage({ ...view, token, root, address: `${root}ui/o/${id}` }));
  }
}

function roleIn(form: URLSearchParams): MemberRole {
  const role = roles.find((candidate) => candidate === form.get('role'));
  if (!role) throw new InvalidInputError('Choose a role');
  return role;
}

function rowIn(form: URLSearchParams): string {
  const id = form.get('id') ?? '';
  if (!isUUID(id)) throw new InvalidInputError('This form is not known: open the page again');
  return id;
}

function requireName(form: URLSearchParams): void {
  const typed = form.get('typed')?.trim();
  if (!typed || typed !== form.get('expected')?.trim()) {
    throw new InvalidInputError('The typed name does not match');
  }
}

/**
 * Returns the message about the keys that a removed member created, with as many names as fit into {@link ShownOnce}.
 */
function keysLeft({ keys, revoked }: { keys: { name: string }[]; revoked: boolean }): string {
  if (keys.length === 0) return '';
  const names = keys.map(({ name }) => name).join(', ');
  const shown = names.length > 500 ? `${names.slice(0, 500).toWellFormed()}…` : names;
  return revoked
    ? `Keys of the organization that were revoked: ${shown}.`
    : `Keys of the organization that this person made remain valid: ${shown}.`;
}
