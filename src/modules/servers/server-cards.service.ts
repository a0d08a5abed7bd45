import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import {
  ContributesCardField,
  type ServerCardContributor,
  type ServerCardFieldOptions,
} from './server-card.decorator.js';

/** Collects the members that other modules add to the cards of servers with `@ServerCardField(…)`. */
@Injectable()
export class ServerCardsService implements OnModuleInit {
  private fields: (ServerCardFieldOptions & { contributor: ServerCardContributor })[] = [];

  constructor(private readonly discoveryService: DiscoveryService) {}

  onModuleInit(): void {
    this.fields = this.discoveryService.getProviders({ metadataKey: ContributesCardField.KEY }).flatMap((provider) => {
      const options = this.discoveryService.getMetadataByDecorator(ContributesCardField, provider);
      return options ? [{ ...options, contributor: provider.instance as ServerCardContributor }] : [];
    });
  }

  /** True if no module adds a member. */
  get isEmpty(): boolean {
    return this.fields.length === 0;
  }

  /** The members that modules add. */
  get keys(): string[] {
    return this.fields.map(({ key }) => key);
  }

  /**
   * Reads the added members of these servers, with one call to each contributor.
   *
   * @param keys members to read; all of them if undefined
   * @returns a function from a server's id to its added members
   */
  async read(serverIds: string[], keys?: readonly string[]): Promise<(id: string) => Record<string, unknown>> {
    const fields = serverIds.length === 0 ? [] : this.fields.filter(({ key }) => keys?.includes(key) ?? true);
    const values = await Promise.all(fields.map(({ contributor }) => contributor.fieldsFor(serverIds)));
    return (id) =>
      Object.fromEntries(fields.map(({ key, absent }, at) => [key, values[at]?.has(id) ? values[at].get(id) : absent]));
  }
}
