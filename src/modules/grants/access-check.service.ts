/**
 * Explains why an account can or cannot call a target. Asks the rule of every call (`AccessService.isAllowed`) and names the facts behind
 * the decision.
 *
 * Every account can ask about itself and the targets it can find; the owner of a target, and editors of its organization, about every
 * account; the operator about all.
 *
 * Fails: 404 for a target that is missing or hidden and for a missing account, 403 for another account's access to a target of others.
 */
import { Injectable } from '@nestjs/common';
import { ForbiddenError, NotFoundError } from '../../platform/errors/domain-error.js';
import { AccessService } from '../auth/access.service.js';
import { ANONYMOUS, callerFor, type Caller } from '../auth/access.types.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { KeyScopeError } from '../auth/auth.errors.js';
import { toolsOfAll } from '../auth/memberships.access.js';
import type { AccessCheckDto, AccessCheckQueryDto, AccessReasonDto } from './access-check.dto.js';
import type { TargetKind, TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { GrantsRepository, type OpeningGrant } from './grants.repository.js';

@Injectable()
export class AccessCheckService {
  constructor(
    private readonly accessService: AccessService,
    private readonly apiKeysService: ApiKeysService,
    private readonly grantsRepository: GrantsRepository,
    private readonly targetsService: TargetsService,
  ) {}

  /** @throws NotFoundError, ForbiddenError, KeyScopeError */
  async check(caller: Caller, { account: accountName, on, tool }: AccessCheckQueryDto): Promise<AccessCheckDto> {
    const target = targetOf(on);
    const account = await this.grantsRepository.findAccount(accountName ?? caller.accountId);
    if (!account) throw new NotFoundError('No account has this id or name');
    const row = await this.targetsService.find(target);
    // Also read for missing targets: otherwise the response time would reveal them.
    const ownGrants = await this.grantsRepository.opening(caller.accountId, target);
    const { ownerId, visibility } = row ?? { ownerId: ANONYMOUS.accountId, visibility: null };
    const place = { ownerId, namespace: target.namespace, visibility };
    if (caller.isOperator) this.accessService.requireForAll(caller, 'read');
    const mayFind =
      caller.isOperator || this.accessService.isAllowed(caller, 'discover', { ...place, granted: ownGrants[0]?.level });
    if (!row || !mayFind) throw new NotFoundError(`"${on}" does not exist`);
    // eslint-disable-next-line no-restricted-syntax -- Every account can ask about itself.
    const isSelf = account.id === caller.accountId;
    if (!isSelf && !caller.isOperator && !this.accessService.isAllowed(caller, 'administer', place)) {
      throw new ForbiddenError('Forbidden: only its owner asks about other accounts. Omit account for your own.');
    }
    const person = isSelf ? caller : await this.apiKeysService.callerOf(account.id);
    const grants = isSelf ? ownGrants : await this.grantsRepository.opening(account.id, target);
    const subject: Caller = { ...(person ?? callerFor(account.id)), scopes: null };
    const tools = toolsOfAll(grants);
    const role = subject.memberships.get(ownerId);
    const reasons: AccessReasonDto[] = [];
    const add = (rule: AccessReasonDto['rule'], opens: boolean, message: string) =>
      reasons.push({ rule, opens, message });
    // eslint-disable-next-line no-restricted-syntax -- Names the owner; the rule decides below.
    if (account.id === ownerId) add('owner', true, `${account.name} owns it.`);
    else if (role) {
      const owner = await this.grantsRepository.findAccount(ownerId);
      const opens = this.accessService.owns(subject, 'call', ownerId);
      add('member', opens, `${account.name} is "${role}" of ${owner?.name}, which owns it.`);
    }
    for (const grant of grants) add('grant', tool === undefined || opensTool(grant.tools, tool), inWords(grant));
    if (visibility === 'public') add('public', true, 'Everybody may call it: it is public.');
    const byAccount = this.accessService.isAllowed(subject, 'call', { ...place, granted: grants[0]?.level });
    const isWhole = this.accessService.isAllowed(subject, 'call', place);
    if (!byAccount) add(...closedBy(visibility));
    let allowed = byAccount && person !== null && row.suspended === null;
    if (byAccount && !isWhole && tool !== undefined && !opensTool(tools, tool)) {
      allowed = false;
      add('tool', false, `No grant opens the tool "${tool}".`);
    }
    if (!person) add('disabled', false, `The account ${account.name} is disabled.`);
    if (row.suspended !== null) add('suspended', false, `The operator suspended it: ${row.suspended}`);
    if (isSelf && byAccount) {
      try {
        this.accessService.isAllowed(caller, 'call', { ...place, granted: grants[0]?.level });
      } catch (error) {
        if (!(error instanceof KeyScopeError)) throw error;
        allowed = false;
        add('key', false, error.message);
      }
    }
    return { allowed, account: account.name, reasons };
  }
}

function targetOf(on: string): TargetName {
  const [kind = '', qualified = ''] = on.split(':', 2) as [TargetKind, string];
  const [namespace = '', name = ''] = qualified.split('/');
  return { kind: kind as TargetKind, namespace, name };
}

function opensTool(tools: readonly string[] | null, tool: string): boolean {
  return tools === null || tools.includes(tool);
}

function inWords({ subject, level, tools, expiresAt }: OpeningGrant): string {
  const extent = tools ? `the tools ${tools.join(', ')} of it` : `"${level}"`;
  const end = expiresAt ? ` until ${expiresAt.toISOString()}` : '';
  return `${subject ?? 'Everybody'} was granted ${extent}${end}.`;
}

function closedBy(visibility: string | null): [rule: 'restricted' | 'private', opens: false, message: string] {
  return visibility === 'restricted'
    ? ['restricted', false, 'It is restricted: its owner grants access, also on request.']
    : ['private', false, 'It is open to its owner and to whom it was granted.'];
}
