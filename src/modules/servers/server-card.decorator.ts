import { DiscoveryService } from '@nestjs/core';
import { ApiPropertyOptional, type ApiPropertyOptions } from '#api-docs';
import { ListedServerDto, serverListExample } from './search/server-search.dto.js';
import { ServerDetailDto, serverDetailExample } from './server.dto.js';

/** A member that a module adds to every card of a server: each entry of `GET /servers`, and `GET /servers/{name}`. */
export interface ServerCardFieldOptions {
  /** Name of the field, unique on the card. */
  key: string;
  /** The schema of its value in the API document. */
  schema: ApiPropertyOptions;
  /** The value for servers that `fieldsFor` leaves out; also the example in the API document. */
  absent: unknown;
}

/** The provider that reads the values of a {@link ServerCardField}. */
export interface ServerCardContributor {
  /**
   * Reads the values for all servers of a page in one query. Called once per request. An error leaves the
   * member out of all cards of the page, and is logged and counted.
   *
   * @param serverIds 1 to 100 ids
   * @returns values by server id; a server without an entry gets `absent`
   */
  fieldsFor(serverIds: string[]): Promise<Map<string, unknown>>;
}

/** Metadata of a contributor's class, by which `ServerCardsService` finds it. */
export const ContributesCardField = DiscoveryService.createDecorator<ServerCardFieldOptions>();

/**
 * Adds a member to the cards of servers and documents it. Decorates a provider of any module.
 *
 * @throws Error while the class loads, if the card already has a member of this name
 */
export function ServerCardField(
  options: ServerCardFieldOptions,
): (contributor: new (...args: never[]) => ServerCardContributor) => void {
  const { key, schema, absent } = options;
  for (const example of [serverDetailExample, ...serverListExample.servers]) {
    if (key in example) throw new Error(`The card of a server has a member "${key}" already: choose another name`);
    Object.assign(example, { [key]: absent });
  }
  ApiPropertyOptional(schema)(ListedServerDto.prototype, key);
  ApiPropertyOptional(schema)(ServerDetailDto.prototype, key);
  return ContributesCardField(options);
}
