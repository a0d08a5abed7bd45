import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { isObject, type JsonObject } from '../../../platform/text/json.js';
import { Vault } from '../../../platform/vault/vault.js';
import { AccessService } from '../../auth/access.service.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { GrantLevelError } from '../../auth/auth.errors.js';
import { NamespaceNotFoundError } from '../../namespaces/namespaces.errors.js';
import { TargetsService } from '../../targets/targets.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { withinTools, type ServerOffers } from '../../servers/server.types.js';
import { ToolOutputsService } from '../../tool-schemas/tool-outputs.service.js';
import type { MockDto } from '../core/connection.dto.js';
import type { NewTarget } from '../core/connection-target.js';
import { MockRecordings } from './mock-models.service.js';
import { MocksRepository } from './mock.repository.js';
import { readScenario, requireTools } from './simulator/fixture.js';
import type { FrozenServer } from './simulator/simulator.js';

const SERVER_BYTES_MAX = 4 * 1024 * 1024;

/** Maximum number of inferred schemas, each of which takes a query. */
const INFERRED_MAX = 200;

export interface NewMock {
  server: ServerOffers & Pick<FrozenServer, 'inferred'>;
  /** Recorded calls to replay, as JSON strings. */
  replies: string[];
}

@Injectable()
export class MockCreation {
  constructor(
    private readonly serverReleasesService: ServerReleasesService,
    private readonly toolOutputsService: ToolOutputsService,
    private readonly mockRecordings: MockRecordings,
    private readonly mocksRepository: MocksRepository,
    private readonly vault: Vault,
    private readonly accessService: AccessService,
    private readonly targetsService: TargetsService,
  ) {}

  /**
   * @throws InvalidInputError for a server without a successful release or larger than 4 MB, a broken fixture, and a replay of a connection
   * without recorded calls; GrantLevelError and KeyScopeError for a replay by a caller that cannot read recorded calls
   */
  async prepare(
    namespace: OwnedNamespace,
    { serverId, serverName, grantedTools }: NewTarget,
    mock: MockDto | undefined,
    caller: Caller,
  ): Promise<NewMock | null> {
    if (!mock?.enabled || serverId === null) return null;
    const scenario = readScenario(mock.scenario);
    const allOffers = await this.serverReleasesService.offersOf(serverId);
    if (!allOffers) {
      throw new InvalidInputError(
        `"${serverName}" cannot be simulated: it has no successful release yet, so nothing is known of its tools. ` +
          'Publish one first.',
      );
    }
    const offers = withinTools(allOffers, grantedTools);
    if (scenario.kind === 'fixture') requireTools(scenario.fixture, offers.tools ?? []);
    const names = (offers.tools ?? []).flatMap(({ name, outputSchema }) =>
      isObject(outputSchema) ? [] : [String(name)],
    );
    const inferred: Record<string, JsonObject> = {};
    for (const name of names.slice(0, INFERRED_MAX)) {
      const schema = await this.toolOutputsService.inferred(serverId, name);
      if (schema) inferred[name] = schema;
    }
    const server = Object.keys(inferred).length === 0 ? offers : { ...offers, inferred };
    if (Buffer.byteLength(JSON.stringify(server)) > SERVER_BYTES_MAX) {
      throw new InvalidInputError(`"${serverName}" cannot be simulated: what it offers is larger than 4 MB.`);
    }
    const replies = scenario.kind === 'replay' ? await this.readCalls(namespace, scenario.connectionId, caller) : [];
    return { server, replies };
  }

  /** @param id of the connection's row, which the same transaction creates */
  async insert(id: string, { server, replies }: NewMock, tx: EntityManager): Promise<void> {
    const sealed = replies.map((text) => this.vault.seal(text, id));
    await this.mocksRepository.insert({ id, server, replies: sealed }, tx);
  }

  /** Returns JSON strings in the order of the calls. */
  private async readCalls(
    { id: namespaceId, name }: OwnedNamespace,
    connectionId: string,
    caller: Caller,
  ): Promise<string[]> {
    const owner = await this.targetsService.findNamespace(name);
    if (!owner) throw new NamespaceNotFoundError();
    const mayRead = this.accessService.isAllowed(caller, 'administer', { ownerId: owner.ownerId, namespace: name });
    if (!mayRead && (await this.targetsService.find({ kind: 'connection', namespace: name, name: connectionId }))) {
      throw new GrantLevelError('manage', 'administer');
    }
    const calls = (mayRead && (await this.mockRecordings.read?.(namespaceId, connectionId))) || [];
    if (calls.length > 0) return calls;
    throw new InvalidInputError(
      `Nothing is recorded of "${connectionId.slice(0, 255)}" in this namespace: ` +
        `PUT {"enabled": true} to its /recording, call its tools, then create the mock.`,
    );
  }
}
