import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { InjectQueue } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import { type ChangeEvent, ConflictError, Http, NotFoundError, OnEvent, Secrets } from '@slipway/module';
import { ArrayContains, Repository } from 'typeorm';
import { WEBHOOK_EVENTS, type AddWebhookDto, type AddedWebhookDto, type WebhookDto } from './webhook.dto.js';
import { Webhook } from './webhook.entity.js';

export const QUEUE = 'webhooks-requests';

/** A request that is to be sent. */
export interface WebhookRequest {
  webhookId: string;
  eventId: string;
  body: string;
}

const WEBHOOKS_MAX = 20;

/** Eight attempts within about two minutes. */
const options = {
  attempts: 8,
  backoff: { type: 'exponential', delay: 1_000 },
  removeOnComplete: 100,
  removeOnFail: 1_000,
};

@Injectable()
export class WebhooksService {
  constructor(
    @InjectRepository(Webhook) private readonly webhooks: Repository<Webhook>,
    @InjectQueue(QUEUE) private readonly queue: Queue<WebhookRequest>,
    private readonly secrets: Secrets,
    private readonly http: Http,
  ) {}

  /** @throws ConflictError for the 21st of an account */
  async add(accountId: string, { url, events }: AddWebhookDto): Promise<AddedWebhookDto> {
    if ((await this.webhooks.countBy({ accountId })) >= WEBHOOKS_MAX) {
      throw new ConflictError(`An account has at most ${WEBHOOKS_MAX} webhooks: delete one`);
    }
    const id = randomUUID();
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const sealedSecret = this.secrets.seal('webhooks', secret, id);
    await this.webhooks.insert({ id, accountId, url, events, sealedSecret });
    return { id, url, events, secret };
  }

  async list(accountId: string): Promise<WebhookDto[]> {
    const webhooks = await this.webhooks.find({ where: { accountId }, order: { createdAt: 'ASC' } });
    return webhooks.map(({ id, url, events }) => ({ id, url, events }));
  }

  /** @throws NotFoundError */
  async delete(accountId: string, id: string): Promise<void> {
    const { affected } = await this.webhooks.delete({ accountId, id });
    if (!affected) throw new NotFoundError('Webhook not found');
  }

  /** Adds a job for each webhook. An event that is delivered again finds its jobs there. */
  @OnEvent(...WEBHOOK_EVENTS)
  async enqueue(event: ChangeEvent): Promise<void> {
    const webhooks = await this.webhooks.findBy({ accountId: event.accountId, events: ArrayContains([event.name]) });
    const { id, name, at, target, before, after } = event;
    const body = JSON.stringify({ type: name, timestamp: at, data: { target, before, after } });
    for (const webhook of webhooks) {
      const request = { webhookId: webhook.id, eventId: id, body };
      await this.queue.add('send', request, { ...options, jobId: `${webhook.id}-${id}` });
    }
  }

  /** Sends a request, signed as standardwebhooks.com describes. @throws Error for a response that is no success */
  async send({ webhookId, eventId, body }: WebhookRequest): Promise<void> {
    const webhook = await this.webhooks.findOneBy({ id: webhookId });
    if (!webhook) return;
    const secret = this.secrets.open('webhooks', webhook.sealedSecret, webhook.id);
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      .update(`${eventId}.${timestamp}.${body}`)
      .digest('base64');
    const headers = {
      'content-type': 'application/json',
      'webhook-id': eventId,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    };
    const { ok, status } = await this.http.fetch(webhook.url, { method: 'POST', headers, body, timeoutMs: 10_000 });
    if (!ok) throw new Error(`${new URL(webhook.url).host} answered ${status}`);
  }
}
