/**
 * Closes open requests whose right was revoked, for any reason: calls, streams and tunnels. Each open request is checked again every 2 s
 * against the database, so it closes within 5 s in every process; announced revocations close streams and tunnels immediately. A call is
 * closed after two failed checks in a row: it may have had effects, so its response has at least 2 s to arrive.
 */
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { DomainError } from '../../platform/errors/domain-error.js';
import { OpenRequests, type OpenRequest } from '../../platform/http/open-requests.js';
import { partOf } from '../../platform/parts.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Schedule, type ScheduledWork } from '../../platform/schedule/schedule.js';
import { AccessService, questionOf, type AccessFacts } from './access.service.js';
import {
  ANONYMOUS,
  GrantSource,
  type AccessRule,
  type Caller,
  type GrantRef,
  type RuleParameters,
} from './access.types.js';
import { UnauthenticatedError } from './auth.errors.js';
import { ApiKeysService } from './api-keys.service.js';
import { namespaceNamed, type TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { accountOwns } from './may.js';

const CHECK_MS = 2_000;

export interface Right {
  caller: Caller;
  rule: AccessRule;
  target: RuleParameters;
  /** The grant that opened the stream or call; absent if the account owns the target. */
  by?: GrantRef;
}

@Injectable()
export class OpenRights implements OnModuleInit, OnApplicationBootstrap {
  private readonly logger = new Logger('access');
  private grants!: GrantSource;
  private work: ScheduledWork | undefined;
  private soon: Promise<void> | undefined;

  constructor(
    private readonly openRequests: OpenRequests<Right>,
    private readonly accessService: AccessService,
    private readonly apiKeysService: ApiKeysService,
    private readonly targetsService: TargetsService,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    private readonly moduleRef: ModuleRef,
  ) {}

  async onModuleInit(): Promise<void> {
    this.grants = partOf(this.moduleRef, GrantSource);
    const check = () => this.checkSoon();
    await this.pubSub.subscribe('auth.account-changed', check);
    await this.pubSub.subscribe('auth.key-revoked', check);
    await this.pubSub.subscribe('grants.changed', check);
    await this.pubSub.subscribe('namespaces.suspended', check);
  }

  onApplicationBootstrap(): void {
    this.work = this.schedule.every('check of open requests', CHECK_MS, () => this.check(true));
  }

  private checkSoon(): void {
    // One check at a time, however many changes a tenant makes: the next scheduled check covers changes made during this one.
    this.soon ??= Promise.resolve()
      .then(() => this.check(false))
      .catch((error: unknown) =>
        this.logger.warn({ msg: 'streams without a right are closed at the next check', err: error }),
      )
      .finally(() => (this.soon = undefined));
  }

  private async check(calls: boolean): Promise<void> {
    const open = this.openRequests.list().filter(({ isCall }) => calls || !isCall);
    if (open.length === 0) return;
    const callers = await this.callersOf(open);
    const facts = await this.factsOf(open, callers);
    for (const each of open) {
      try {
        await this.checkOne(each, callers, facts);
        each.hasFailed = false;
      } catch (error) {
        if (error instanceof DomainError) {
          if (!each.isCall || each.hasFailed) each.end(error);
          each.hasFailed = true;
        } else this.logger.warn({ msg: 'the right of an open request could not be checked', err: error });
      }
    }
  }

  private async checkOne(
    { right: { caller, rule, target, by }, isCall, tool, check }: OpenRequest<Right>,
    callers: Map<string, Caller>,
    facts: AccessFacts,
  ): Promise<void> {
    const now = callers.get(caller.keyId);
    if (!now) throw UnauthenticatedError.invalid();
    if (rule.owner !== undefined) {
      const { grant } = (await this.accessService.authorizeOwned(now, rule, questionOf(rule, target), facts)).caller;
      if (!isStillOpen(by, grant, isCall ? tool : undefined)) throw UnauthenticatedError.invalid();
    }
    await check?.();
  }

  private async callersOf(open: OpenRequest<Right>[]): Promise<Map<string, Caller>> {
    const callers = new Map(open.map(({ right: { caller } }) => [caller.keyId, caller]));
    const ids = [...callers.keys()].filter((id) => id !== ANONYMOUS.keyId);
    const valid = await this.apiKeysService.membershipsAmong(ids);
    for (const id of ids) {
      const memberships = valid.get(id);
      if (memberships) callers.set(id, { ...(callers.get(id) as Caller), memberships });
      else callers.delete(id);
    }
    return callers;
  }

  private async factsOf(open: OpenRequest<Right>[], callers: Map<string, Caller>): Promise<AccessFacts> {
    const names = new Set<string>();
    for (const { right } of open)
      if (right.rule.owner !== undefined) names.add(questionOf(right.rule, right.target).name);
    const namespaces = await this.targetsService.readNamespaces([...names]);
    const questions = new Map<string, { accountId: string; target: TargetName }>();
    for (const { right } of open) {
      const caller = callers.get(right.caller.keyId);
      if (!caller || right.rule.owner === undefined) continue;
      const { name, target, action } = questionOf(right.rule, right.target);
      const namespace = namespaces.get(name);
      if (namespace && accountOwns(caller, action, namespace.ownerId)) continue;
      const { accountId } = caller;
      for (const candidate of [target, namespaceNamed(name)])
        questions.set(keyOf(accountId, candidate), { accountId, target: candidate });
    }
    const foundGrants = await this.grants.findAll([...questions.values()]);
    const grants = new Map([...questions.keys()].map((key, at) => [key, foundGrants[at] ?? null]));
    return {
      namespace: (name) => namespaces.get(name) ?? null,
      grant: (accountId, target) => grants.get(keyOf(accountId, target)) ?? null,
    };
  }
}

function keyOf(accountId: string, target: TargetName): string {
  return JSON.stringify([accountId, target.kind, target.namespace, target.name]);
}

/**
 * Returns true if what was opened by `before` is also open by `now`. A stream closes when it would show something
 * else; a call of one tool only when that tool is no longer granted.
 */
export function isStillOpen(
  before: GrantRef | undefined,
  now: GrantRef | undefined,
  tool: (() => string | undefined) | undefined,
): boolean {
  const terms = (grant?: GrantRef) => JSON.stringify([grant?.level, grant?.tools && [...grant.tools].sort()]);
  if (terms(before) === terms(now) || (tool && !now?.tools)) return true;
  const called = tool?.();
  return called !== undefined && now?.tools?.includes(called) === true;
}
