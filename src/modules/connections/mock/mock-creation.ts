import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { FrozenServer } from './simulator/simulator.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { isObject } from '../../../platform/text/json.js';
import { ToolOutputsService } from '../../tool-schemas/tool-outputs.service.js';
import type { ServerOffers } from '../../servers/server.types.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { NewTarget } from '../core/connection-target.js';
import { MockReplies, replayedIn } from './mock-replies.js';
import type { MockDto } from '../core/connection.dto.js';

/** What is frozen of a server, as JSON. */
const SERVER_BYTES_MAX = 4 * 1024 * 1024;

/** Tools of one server that are looked up so: each costs a query. */
const INFERRED_MAX = 200;

/** A mock that waits for its connection's row. */
export interface NewMock {
  server: ServerOffers & Pick<FrozenServer, 'inferred'>;
  /** Recorded calls to replay, as JSON texts. */
  replies: string[];
}

/** Makes mocks: freezes what a server offers at this moment. */
@Injectable()
export class MockCreation {
  constructor(
    private readonly servers: ServerReleasesService,
    private readonly replies: MockReplies,
    private readonly outputs: ToolOutputsService,
  ) {}

  /**
   * The mock a new connection asks for; null when it asks for none.
   *
   * @throws InvalidInputError when nothing is known of its server, or too much, or there is no recording to replay
   */
  async prepare(
    namespaceId: string,
    { serverId, serverName }: NewTarget,
    mock: MockDto | undefined,
  ): Promise<NewMock | null> {
    if (!mock?.enabled || serverId === null) return null;
    const offers = await this.servers.offersOf(serverId);
    if (!offers) {
      throw new InvalidInputError(
        `"${serverName}" cannot be simulated: it has no successful release yet, so nothing is known of its tools. ` +
          'Publish one first.',
      );
    }
    const inferred = await this.inferredOf(serverId, offers);
    const server = Object.keys(inferred).length === 0 ? offers : { ...offers, inferred };
    if (Buffer.byteLength(JSON.stringify(server)) > SERVER_BYTES_MAX) {
      throw new InvalidInputError(`"${serverName}" cannot be simulated: what it offers is larger than 4 MB.`);
    }
    const replayed = replayedIn(mock.scenario);
    return { server, replies: replayed === null ? [] : await this.replies.recorded(namespaceId, replayed) };
  }

  /** What the answers of tools without an output schema looked like so far. */
  private async inferredOf(
    serverId: string,
    { tools }: ServerOffers,
  ): Promise<Record<string, Record<string, unknown>>> {
    const names = (tools ?? []).flatMap(({ name, outputSchema }) => (isObject(outputSchema) ? [] : [String(name)]));
    const found: [string, Record<string, unknown>][] = [];
    for (const name of names.slice(0, INFERRED_MAX)) {
      const schema = await this.outputs.inferred(serverId, name);
      if (schema) found.push([name, schema]);
    }
    return Object.fromEntries(found);
  }

  /** Part of the transaction that creates the connection. @param id of its row @param connectionId which seeds the mock */
  async insert(id: string, connectionId: string, { server, replies }: NewMock, tx: EntityManager): Promise<void> {
    await tx.query('INSERT INTO connection_mocks (connection_id, seed, server) VALUES ($1, $2, $3::jsonb)', [
      id,
      connectionId,
      JSON.stringify(server),
    ]);
    await this.replies.insert(id, replies, tx);
  }
}
