import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { QUEUE, type WebhookRequest, WebhooksService } from './webhooks.service.js';

/** Sends the requests of webhooks, each until it succeeds or eight attempts have failed. */
@Processor(QUEUE, { concurrency: 8 })
export class WebhooksProcessor extends WorkerHost {
  constructor(private readonly webhooksService: WebhooksService) {
    super();
  }

  process({ data }: Job<WebhookRequest>): Promise<void> {
    return this.webhooksService.send(data);
  }
}
