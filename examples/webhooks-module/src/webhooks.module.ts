import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { defineModule, registerQueue, roleModule } from '@slipway/module';
import { CreateWebhooks1795300000000 } from './create-webhooks.migration.js';
import { Webhook } from './webhook.entity.js';
import { WebhooksController } from './webhooks.controller.js';
import { WebhooksProcessor } from './webhooks.processor.js';
import { QUEUE, WebhooksService } from './webhooks.service.js';

declare global {
  interface SlipwayScopes {
    webhooks: 'read' | 'write';
  }
}

@Module({})
export class WebhooksModule {
  static readonly forRoles = roleModule(() => ({
    module: WebhooksModule,
    always: { imports: [TypeOrmModule.forFeature([Webhook]), registerQueue(QUEUE)], providers: [WebhooksService] },
    api: { controllers: [WebhooksController] },
    worker: { providers: [WebhooksProcessor] },
  }));
}

export default defineModule({
  name: 'webhooks',
  apiVersion: 1,
  module: WebhooksModule.forRoles,
  roles: ['api', 'worker'],
  migrations: [CreateWebhooks1795300000000],
});
