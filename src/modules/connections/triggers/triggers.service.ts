import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import type { McpReply } from '../../../mcp/protocol/channel.js';
import { deadlineIn, withinDeadline } from '../../../mcp/protocol/deadline.js';
import { listPages } from '../../../mcp/protocol/list-pages.js';
import { UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import { resultOf } from '../../../mcp/protocol/messages.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';
import { Egress } from '../../../platform/egress/egress.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { isObject } from '../../../platform/text/json.js';
import { visible } from '../../../platform/text/quoted.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import type { ConnectionHandle } from '../core/connection-handle.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import type { ObjectSchemaDto } from '../tools/connection-tools.dto.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { requireParams, requireSecret, subscriptionId } from './subscription-key.js';
import type { SubscribeTriggerDto, TriggerDto, TriggerSubscriptionDto, UnsubscribeTriggerDto } from './trigger.dto.js';

const EVENTS = 'ai.smithery/events';
const triggerList = { method: `${EVENTS}/list`, member: 'events', noun: 'triggers' };

/** What is read of an endless list. */
const PAGES_MAX = 16;
const TRIGGERS_MAX = 1_000;

/** How long a subscription holds whose server does not say. */
const SUBSCRIBED_MS = 60 * 60_000;

/** DNS may take this long to say where events would go. */
const LOCATE_MS = 5_000;

/** How servers say that they have no such method; some take it for a request with bad params. */
const unknownMethod: ReadonlySet<number> = new Set([rpcCode.methodNotFound, rpcCode.invalidParams]);

/**
 * The triggers of connections. All of it is the upstream's: it keeps the subscriptions and sends the events to whoever
 * subscribed, signed with their secret. We only pass on.
 */
@Injectable()
export class TriggersService {
  constructor(
    private readonly links: ConnectionHandles,
    private readonly egress: Egress,
    private readonly env: Env,
  ) {}

  /** None for a server that has no triggers. @throws ResourceNotFoundError, UpstreamFailure */
  async list(namespace: OwnedNamespace, connectionId: string): Promise<TriggerDto[]> {
    const link = await this.links.find(namespace, connectionId);
    return (await triggersOf(link, this.env.upstreamCallTimeoutMs)) ?? [];
  }

  /** @throws ResourceNotFoundError, UpstreamFailure */
  async get(namespace: OwnedNamespace, connectionId: string, name: string): Promise<TriggerDto> {
    const trigger = (await this.list(namespace, connectionId)).find((one) => one.name === name);
    if (!trigger) throw new ResourceNotFoundError({ trigger: name });
    return trigger;
  }

  /**
   * Subscribes, or extends what is subscribed.
   *
   * @throws InvalidInputError, EgressRefusedError, ResourceNotFoundError, UpstreamFailure
   */
  async subscribe(
    namespace: OwnedNamespace,
    connectionId: string,
    name: string,
    { params = {}, delivery: { url, secret } }: SubscribeTriggerDto,
  ): Promise<TriggerSubscriptionDto> {
    requireParams(params);
    requireSecret(secret);
    await this.requireReachable(url);
    const link = await this.links.find(namespace, connectionId);
    const left = deadlineIn(this.env.upstreamCallTimeoutMs);
    if (!(await triggersOf(link, left()))?.some((one) => one.name === name))
      throw new ResourceNotFoundError({ trigger: name });
    const id = subscriptionId({ namespace: namespace.name, connectionId, trigger: name, params, url });
    const given = { id, name, params, delivery: { mode: 'webhook', url, secret } };
    const reply = await ask(link, 'subscribe', given, left());
    requireAccepted(reply, secret);
    const result = resultOf(reply);
    return { id, refreshBefore: refreshTime(isObject(result) ? result.refreshBefore : undefined) };
  }

  /** @throws InvalidInputError, ResourceNotFoundError, UpstreamFailure */
  async unsubscribe(
    namespace: OwnedNamespace,
    connectionId: string,
    name: string,
    { params = {}, delivery: { url } }: UnsubscribeTriggerDto,
  ): Promise<SuccessDto> {
    requireParams(params);
    const link = await this.links.find(namespace, connectionId);
    const id = subscriptionId({ namespace: namespace.name, connectionId, trigger: name, params, url });
    const given = { id, name, params, delivery: { mode: 'webhook', url } };
    requireAccepted(await ask(link, 'unsubscribe', given, this.env.upstreamCallTimeoutMs));
    return { success: true };
  }

  /**
   * Events are sent by the upstream, not from here; still nobody is to aim it at what this service would not dial. A name
   * that DNS does not know here may be known there.
   */
  private async requireReachable(address: string): Promise<void> {
    const url = this.egress.check(address);
    const nowhere = { addresses: 0, refusal: null };
    const located = this.egress.locate(url).catch(() => nowhere);
    const { refusal } = await withinDeadline(located, LOCATE_MS, 'DNS did not answer in time.').catch(() => nowhere);
    if (refusal) throw refusal;
  }
}

/** Null when the server has no triggers at all. @throws UpstreamFailure */
async function triggersOf(link: ConnectionHandle, timeoutMs: number): Promise<TriggerDto[] | null> {
  const triggers: TriggerDto[] = [];
  let pages = 0;
  try {
    for await (const { items, isUnknown } of listPages(link, triggerList, timeoutMs)) {
      if (isUnknown) return null;
      triggers.push(...items.flatMap(toTrigger));
      pages += 1;
      if (pages === PAGES_MAX || triggers.length >= TRIGGERS_MAX) break;
    }
  } catch (error) {
    const code = error instanceof UpstreamError ? (error.detail as { code?: number } | undefined)?.code : undefined;
    if (code !== undefined && unknownMethod.has(code)) return null;
    throw error;
  }
  return triggers.slice(0, TRIGGERS_MAX);
}

/** What has no name is passed over. */
function toTrigger(text: string): TriggerDto[] {
  const value: unknown = JSON.parse(text);
  if (!isObject(value) || typeof value.name !== 'string') return [];
  const { name, delivery, description, inputSchema, payloadSchema } = value;
  const ways = Array.isArray(delivery) ? delivery.filter((way) => typeof way === 'string') : ['webhook'];
  return [
    {
      name,
      delivery: ways,
      ...(typeof description === 'string' && { description }),
      ...(isObject(inputSchema) && { inputSchema: inputSchema as unknown as ObjectSchemaDto }),
      ...(isObject(payloadSchema) && { payloadSchema: payloadSchema as unknown as ObjectSchemaDto }),
    },
  ];
}

function ask(
  link: ConnectionHandle,
  what: 'subscribe' | 'unsubscribe',
  params: object,
  timeoutMs: number,
): Promise<McpReply> {
  return link.request({ method: `${EVENTS}/${what}`, params: JSON.stringify(params), timeoutMs });
}

/** @throws ResourceNotFoundError when there is no such method, InvalidInputError, UpstreamError */
function requireAccepted({ error }: McpReply, secret = ''): void {
  if (!error) return;
  if (error.code === rpcCode.methodNotFound) throw new ResourceNotFoundError();
  const words = visible(secret === '' ? error.message : error.message.replaceAll(secret, '…'), 300);
  if (error.code === rpcCode.invalidParams) throw new InvalidInputError(`The MCP server does not take it: ${words}`);
  throw new UpstreamError(`The MCP server refused it: ${words}`, { code: error.code });
}

/** The server's word, where it is a time. */
function refreshTime(given: unknown): string {
  const time = typeof given === 'string' ? Date.parse(given) : NaN;
  return new Date(Number.isNaN(time) ? Date.now() + SUBSCRIBED_MS : time).toISOString();
}
