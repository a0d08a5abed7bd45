import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { Metrics } from '../../platform/telemetry/metrics.js';
import {
  ContributesCardField,
  type ServerCardContributor,
  type ServerCardFieldOptions,
} from './server-card.decorator.js';

@Injectable()
export class ServerCardsService implements OnModuleInit {
  private readonly logger = new Logger('servers');
  private failures = 0;
  private fields: (ServerCardFieldOptions & { contributor: ServerCardContributor })[] = [];

  constructor(
    private readonly discoveryService: DiscoveryService,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_server_card_failures_total',
      'Members of modules missing on the cards of a page, since reading them failed.',
      () => this.failures,
    );
  }

  onModuleInit(): void {
    this.fields = this.discoveryService.getProviders({ metadataKey: ContributesCardField.KEY }).flatMap((provider) => {
      const options = this.discoveryService.getMetadataByDecorator(ContributesCardField, provider);
      return options ? [{ ...options, contributor: provider.instance as ServerCardContributor }] : [];
    });
  }

  get isEmpty(): boolean {
    return this.fields.length === 0;
  }

  get keys(): string[] {
    return this.fields.map(({ key }) => key);
  }

  /**
   * Calls each contributor once. A contributor that fails adds nothing.
   *
   * @param keys members to read; all of them if undefined
   * @returns a function from a server's id to its added members
   */
  async read(serverIds: string[], keys?: readonly string[]): Promise<(id: string) => Record<string, unknown>> {
    const fields = serverIds.length === 0 ? [] : this.fields.filter(({ key }) => keys?.includes(key) ?? true);
    const read = await Promise.all(
      fields.map(async (field) => {
        try {
          return [{ ...field, values: await field.contributor.fieldsFor(serverIds) }];
        } catch (error) {
          this.failures += 1;
          this.logger.error({ msg: `the member ${field.key} of servers failed`, err: error });
          return [];
        }
      }),
    );
    return (id) =>
      Object.fromEntries(read.flat().map(({ key, absent, values }) => [key, values.has(id) ? values.get(id) : absent]));
  }
}
