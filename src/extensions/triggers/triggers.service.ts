import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Caller, Channel, McpReply, ObjectSchemaDto, SuccessDto } from '../../extension.js';
import {
  canonicalJson,
  Connections,
  deadlineIn,
  DEPTH_MAX,
  EVENTS_EXTENSION,
  Http,
  InvalidInputError,
} from '../../extension.js';
import { isObject, isWithinDepth, listPages, ResourceNotFoundError, resultOf, rpcCode } from '../../extension.js';
import { Tuning, UpstreamError, visible } from '../../extension.js';
import type { SubscribeTriggerDto, TriggerDto, TriggerSubscriptionDto, UnsubscribeTriggerDto } from './trigger.dto.js';

const triggerList = { method: `${EVENTS_EXTENSION}/list`, member: 'events', noun: 'triggers' };

const PARAMS_BYTES_MAX = 16 * 1024;
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

const PAGES_MAX = 16;
const TRIGGERS_MAX = 1_000;

/** Lifetime of a subscription if its server names none. */
const SUBSCRIBED_MS = 60 * 60_000;

/** Error codes for an unknown method; some servers use invalid params. */
const unknownMethod: ReadonlySet<number> = new Set([rpcCode.methodNotFound, rpcCode.invalidParams]);

type Requests = Pick<Channel, 'request'>;

interface ConnectionRef {
  namespace: string;
  id: string;
}

/**
 * The upstream stores the subscriptions and sends the events to their URLs, signed with their secrets. Slipway only
 * forwards the requests.
 */
@Injectable()
export class TriggersService {
  constructor(
    private readonly connections: Connections,
    private readonly http: Http,
    private readonly tuning: Tuning,
  ) {}

  /** Lists triggers; none for a server that does not support them. @throws ResourceNotFoundError, UpstreamFailure */
  async list(caller: Caller, { namespace, id }: ConnectionRef): Promise<TriggerDto[]> {
    const channel = await this.connections.channel(caller, `${namespace}/${id}`, { readOnly: true });
    return (await triggersOf(channel, this.tuning.upstreamCallTimeoutMs)) ?? [];
  }

  /** @throws ResourceNotFoundError, UpstreamFailure */
  async get(caller: Caller, connection: ConnectionRef, name: string): Promise<TriggerDto> {
    const triggers = await this.list(caller, connection);
    const trigger = triggers.find((candidate) => candidate.name === name);
    if (!trigger) throw unknownTrigger(connection, name, triggers);
    return trigger;
  }

  /**
   * Subscribes, or extends the subscription with the same params and URL.
   *
   * @throws InvalidInputError, EgressRefusedError, ResourceNotFoundError, UpstreamFailure
   */
  async subscribe(
    caller: Caller,
    connection: ConnectionRef,
    name: string,
    { params = {}, delivery: { url, secret } }: SubscribeTriggerDto,
  ): Promise<TriggerSubscriptionDto> {
    requireParams(params);
    requireSecret(secret);
    // The upstream sends the events, but not to addresses that our egress rules block.
    await this.http.check(url);
    const channel = await this.open(caller, connection);
    const msLeft = deadlineIn(this.tuning.upstreamCallTimeoutMs);
    const triggers = (await triggersOf(channel, msLeft())) ?? [];
    if (!triggers.some((trigger) => trigger.name === name)) throw unknownTrigger(connection, name, triggers);
    const id = subscriptionId(connection, name, params, url);
    const request = { id, name, params, delivery: { mode: 'webhook', url, secret } };
    const reply = await send(channel, 'subscribe', request, msLeft());
    requireAccepted(reply, secret);
    const result = resultOf(reply);
    const sent = isObject(result) ? result.refreshBefore : undefined;
    const time = typeof sent === 'string' ? Date.parse(sent) : NaN;
    return { id, refreshBefore: new Date(Number.isNaN(time) ? Date.now() + SUBSCRIBED_MS : time).toISOString() };
  }

  /** @throws InvalidInputError, ResourceNotFoundError, UpstreamFailure */
  async unsubscribe(
    caller: Caller,
    connection: ConnectionRef,
    name: string,
    { params = {}, delivery: { url } }: UnsubscribeTriggerDto,
  ): Promise<SuccessDto> {
    requireParams(params);
    const channel = await this.open(caller, connection);
    const id = subscriptionId(connection, name, params, url);
    const request = { id, name, params, delivery: { mode: 'webhook', url } };
    requireAccepted(await send(channel, 'unsubscribe', request, this.tuning.upstreamCallTimeoutMs));
    return { success: true };
  }

  private open(caller: Caller, { namespace, id }: ConnectionRef): Promise<Requests> {
    return this.connections.channel(caller, `${namespace}/${id}`);
  }
}

/** Returns null for a server without triggers. @throws UpstreamFailure */
async function triggersOf(channel: Requests, timeoutMs: number): Promise<TriggerDto[] | null> {
  const triggers: TriggerDto[] = [];
  let pages = 0;
  try {
    for await (const { items, isUnknown } of listPages(channel, triggerList, timeoutMs)) {
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
  channel: Requests,
  action: 'subscribe' | 'unsubscribe',
  params: object,
  timeoutMs: number,
): Promise<McpReply> {
  return channel.request({ method: `${EVENTS_EXTENSION}/${action}`, params: JSON.stringify(params), timeoutMs });
}

/** @throws ResourceNotFoundError for an unknown method, InvalidInputError, UpstreamError */
function requireAccepted({ error }: McpReply, secret = ''): void {
  if (!error) return;
  if (error.code === rpcCode.methodNotFound) throw new ResourceNotFoundError();
  const words = visible(secret === '' ? error.message : error.message.replaceAll(secret, '…'), 300);
  if (error.code === rpcCode.invalidParams) throw new InvalidInputError(`The MCP server rejects the request: ${words}`);
  throw new UpstreamError(`The MCP server refused it: ${words}`, { detail: { code: error.code } });
}

/** Returns the id of a subscription: a hash of its key, regardless of the order of its params. */
function subscriptionId(
  { namespace, id }: ConnectionRef,
  ...key: [trigger: string, params: object, url: string]
): string {
  return `trg_${createHash('sha256')
    .update(canonicalJson([namespace, id, ...key]))
    .digest('hex')
    .slice(0, 32)}`;
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

/** @throws InvalidInputError if they are larger than 16 KB, or nested deeper than 100 levels */
function requireParams(params: Record<string, unknown>): void {
  if (!isWithinDepth(params, DEPTH_MAX))
    throw new InvalidInputError(`params must not be nested beyond ${DEPTH_MAX} levels`);
  if (Buffer.byteLength(JSON.stringify(params)) > PARAMS_BYTES_MAX) {
    throw new InvalidInputError(`params must be at most ${PARAMS_BYTES_MAX / 1024} KB of JSON`);
  }
}

function unknownTrigger({ id }: ConnectionRef, name: string, triggers: TriggerDto[]): ResourceNotFoundError {
  const names = triggers.map((trigger) => trigger.name);
  return ResourceNotFoundError.ofItem('trigger', id, name, names);
}
