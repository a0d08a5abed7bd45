import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { EVENTS_EXTENSION } from '../../../config/published-clients.js';
import { Tuning } from '../../../config/tuning.js';
import type { McpReply } from '../../../mcp/protocol/channel.js';
import { deadlineIn, withinDeadline } from '../../../mcp/protocol/deadline.js';
import { listPages } from '../../../mcp/protocol/list-pages.js';
import { UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import { resultOf } from '../../../mcp/protocol/messages.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';
import { Egress } from '../../../platform/egress/egress.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { DEPTH_MAX } from '../../../platform/database/storable.js';
import { canonicalJson, isObject, isWithinDepth } from '../../../platform/text/json.js';
import { visible } from '../../../platform/text/quoted.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles, type ConnectionHandle } from '../core/connection-handles.js';
import type { ObjectSchemaDto } from '../core/connection.dto.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import type { SubscribeTriggerDto, TriggerDto, TriggerSubscriptionDto, UnsubscribeTriggerDto } from './trigger.dto.js';

const triggerList = { method: `${EVENTS_EXTENSION}/list`, member: 'events', noun: 'triggers' };

const PARAMS_BYTES_MAX = 16 * 1024;
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

/** Limits of a list that does not end. */
const PAGES_MAX = 16;
const TRIGGERS_MAX = 1_000;

/** The lifetime of a subscription whose server does not name one. */
const SUBSCRIBED_MS = 60 * 60_000;

/** The timeout of DNS for the URL of a subscription. */
const LOCATE_MS = 5_000;

/** The error codes for an unknown method; some servers answer with invalid params. */
const unknownMethod: ReadonlySet<number> = new Set([rpcCode.methodNotFound, rpcCode.invalidParams]);

/**
 * The triggers of connections. The upstream stores the subscriptions and sends the events to their URLs, signed with their
 * secrets. Slipway only forwards the requests.
 */
@Injectable()
export class TriggersService {
  constructor(
    private readonly connectionHandles: ConnectionHandles,
    private readonly egress: Egress,
    private readonly tuning: Tuning,
  ) {}

  /** Empty for a server without triggers. @throws ResourceNotFoundError, UpstreamFailure */
  async list(namespace: OwnedNamespace, connectionId: string): Promise<TriggerDto[]> {
    const handle = await this.connectionHandles.find(namespace, connectionId);
    return (await triggersOf(handle, this.tuning.upstreamCallTimeoutMs)) ?? [];
  }

  /** @throws ResourceNotFoundError, UpstreamFailure */
  async get(namespace: OwnedNamespace, connectionId: string, name: string): Promise<TriggerDto> {
    const triggers = await this.list(namespace, connectionId);
    const trigger = triggers.find((candidate) => candidate.name === name);
    if (!trigger) throw unknownTrigger(connectionId, name, triggers);
    return trigger;
  }

  /**
   * Subscribes, or extends the subscription with the same params and URL.
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
    // The upstream sends the events, but not to addresses that egress rules refuse to this service. A name that is unknown
    // to DNS here is allowed: the upstream may know it.
    const unknown = { addresses: 0, refusal: null };
    const located = this.egress.locate(this.egress.check(url)).catch(() => unknown);
    const { refusal } = await withinDeadline(located, LOCATE_MS, 'DNS did not answer in time.').catch(() => unknown);
    if (refusal) throw refusal;
    const handle = await this.connectionHandles.find(namespace, connectionId);
    const msLeft = deadlineIn(this.tuning.upstreamCallTimeoutMs);
    const triggers = (await triggersOf(handle, msLeft())) ?? [];
    if (!triggers.some((trigger) => trigger.name === name)) throw unknownTrigger(connectionId, name, triggers);
    const id = subscriptionId(namespace.name, connectionId, name, params, url);
    const request = { id, name, params, delivery: { mode: 'webhook', url, secret } };
    const reply = await send(handle, 'subscribe', request, msLeft());
    requireAccepted(reply, secret);
    const result = resultOf(reply);
    const sent = isObject(result) ? result.refreshBefore : undefined;
    const time = typeof sent === 'string' ? Date.parse(sent) : NaN;
    return { id, refreshBefore: new Date(Number.isNaN(time) ? Date.now() + SUBSCRIBED_MS : time).toISOString() };
  }

  /** @throws InvalidInputError, ResourceNotFoundError, UpstreamFailure */
  async unsubscribe(
    namespace: OwnedNamespace,
    connectionId: string,
    name: string,
    { params = {}, delivery: { url } }: UnsubscribeTriggerDto,
  ): Promise<SuccessDto> {
    requireParams(params);
    const handle = await this.connectionHandles.find(namespace, connectionId);
    const id = subscriptionId(namespace.name, connectionId, name, params, url);
    const request = { id, name, params, delivery: { mode: 'webhook', url } };
    requireAccepted(await send(handle, 'unsubscribe', request, this.tuning.upstreamCallTimeoutMs));
    return { success: true };
  }
}

/** Null for a server without triggers. @throws UpstreamFailure */
async function triggersOf(handle: ConnectionHandle, timeoutMs: number): Promise<TriggerDto[] | null> {
  const triggers: TriggerDto[] = [];
  let pages = 0;
  try {
    for await (const { items, isUnknown } of listPages(handle, triggerList, timeoutMs)) {
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

/** Leaves out a trigger without a name. */
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

function send(
  handle: ConnectionHandle,
  action: 'subscribe' | 'unsubscribe',
  params: object,
  timeoutMs: number,
): Promise<McpReply> {
  return handle.request({ method: `${EVENTS_EXTENSION}/${action}`, params: JSON.stringify(params), timeoutMs });
}

/** @throws ResourceNotFoundError for an unknown method, InvalidInputError, UpstreamError */
function requireAccepted({ error }: McpReply, secret = ''): void {
  if (!error) return;
  if (error.code === rpcCode.methodNotFound) throw new ResourceNotFoundError();
  const words = visible(secret === '' ? error.message : error.message.replaceAll(secret, '…'), 300);
  if (error.code === rpcCode.invalidParams) throw new InvalidInputError(`The MCP server rejects the request: ${words}`);
  throw new UpstreamError(`The MCP server refused it: ${words}`, { detail: { code: error.code } });
}

/** The id of a subscription: a hash of its key, whatever the order of its params. */
function subscriptionId(
  ...key: [namespace: string, connectionId: string, trigger: string, params: object, url: string]
) {
  return `trg_${createHash('sha256').update(canonicalJson(key)).digest('hex').slice(0, 32)}`;
}

/** @throws InvalidInputError unless it is `whsec_` and the base64 of 24 to 64 bytes */
function requireSecret(secret: string): void {
  const encoded = secret.replace(/^whsec_/, '');
  const bytes = Buffer.from(encoded, 'base64');
  const isBase64 = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  if (isBase64 && bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX) return;
  throw new InvalidInputError(
    `delivery.secret must be whsec_ and the base64 of ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes`,
  );
}

/** @throws InvalidInputError if they are larger than 16 KB, or nested beyond 100 levels */
function requireParams(params: Record<string, unknown>): void {
  if (!isWithinDepth(params, DEPTH_MAX))
    throw new InvalidInputError(`params must not be nested beyond ${DEPTH_MAX} levels`);
  if (Buffer.byteLength(JSON.stringify(params)) > PARAMS_BYTES_MAX) {
    throw new InvalidInputError(`params must be at most ${PARAMS_BYTES_MAX / 1024} KB of JSON`);
  }
}

function unknownTrigger(connectionId: string, name: string, triggers: TriggerDto[]): ResourceNotFoundError {
  const names = triggers.map((trigger) => trigger.name);
  return ResourceNotFoundError.ofItem('trigger', connectionId, name, names);
}
