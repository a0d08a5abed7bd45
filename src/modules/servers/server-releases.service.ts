import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import type { Visibility } from '../targets/target.types.js';
import { toStorableText } from '../../platform/database/storable.js';
import { Server } from './server.entity.js';
import type { ServerOffers, ServerSnapshot, ServerTarget, QualifiedName } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';

export interface FilledFields {
  displayName?: string;
  description?: string;
}

const DESCRIPTION_CHARS_MAX = 2_000;
const TITLE_CHARS_MAX = 255;

@Injectable()
export class ServerReleasesService {
  constructor(
    @InjectRepository(Server) private readonly serverRepository: Repository<Server>,
    private readonly serversRepository: ServersRepository,
  ) {}

  /** Locks the server until the transaction ends, so that no other publication can change it. @throws ServerNotFoundError */
  async lock(id: string, tx: EntityManager): Promise<void> {
    const row = await tx.findOne(Server, { where: { id }, select: { id: true }, lock: { mode: 'pessimistic_write' } });
    if (!row) throw new ServerNotFoundError();
  }

  /**
   * Sets the visibility within the transaction that publishes; the caller announces the change.
   *
   * @param requireOpener throws if the caller cannot open the server
   * @throws SecretsNotConfirmedError; what `requireOpener` throws
   */
  async setVisibility(
    id: string,
    visibility: Visibility,
    requireOpener: (server: Pick<ServerTarget, 'ownerId' | 'namespace'>) => void,
    tx: EntityManager,
  ): Promise<void> {
    await this.serversRepository.setVisibility(tx, id, visibility, requireOpener);
  }

  /** @throws ServerNotFoundError */
  async namesOf(id: string): Promise<QualifiedName & { slug: string }> {
    const { namespace, name, slug } = await this.find(id);
    return { namespace: namespace.name, name, slug };
  }

  /** Returns null without a current release. */
  async offersOf(id: string): Promise<ServerOffers | null> {
    const current = await this.currentOf(id);
    if (!current) return null;
    const { serverInfo, tools, resources, resourceTemplates, prompts } = current;
    return { serverInfo, tools, resources, resourceTemplates, prompts };
  }

  /** Returns null without a current release. */
  async currentOf(id: string): Promise<ServerSnapshot | null> {
    const row = await this.serverRepository.findOne({ where: { id }, select: { id: true, snapshot: true } });
    return row?.snapshot ?? null;
  }

  /** Returns null without a current release. */
  async currentIdOf(id: string): Promise<string | null> {
    const row = await this.serverRepository.findOne({ where: { id }, select: { id: true, currentReleaseId: true } });
    return row?.currentReleaseId ?? null;
  }

  /** @throws ServerNotFoundError */
  async emptyFields(id: string, info: Record<string, unknown>): Promise<FilledFields> {
    const row = await this.find(id);
    const displayName = row.displayName === defaultName(row) ? textOf(info.title, TITLE_CHARS_MAX) : undefined;
    const description = row.description === '' ? textOf(info.description, DESCRIPTION_CHARS_MAX) : undefined;
    return { ...(displayName && { displayName }), ...(description && { description }) };
  }

  async fillIn(id: string, { displayName, description }: FilledFields, tx: EntityManager): Promise<void> {
    if (description !== undefined) await tx.update(Server, { id, description: '' }, { description });
    if (displayName === undefined) return;
    const row = await tx.findOne(Server, { where: { id }, relations: { namespace: true } });
    if (row) await tx.update(Server, { id, displayName: defaultName(row) }, { displayName });
  }

  /** Sets the current release within the transaction that publishes or promotes it. */
  async setCurrent(serverId: string, snapshot: ServerSnapshot, tx: EntityManager): Promise<void> {
    await this.serversRepository.setCurrent(serverId, snapshot, tx);
  }

  /** Stores the result of a scan. @param scanPassed null for a bundle that was not run */
  async setScan(serverId: string, scanPassed: boolean | null, tx: EntityManager): Promise<void> {
    await tx.update(Server, { id: serverId }, { scanPassed });
  }

  private async find(id: string): Promise<Server> {
    const row = await this.serverRepository.findOne({ where: { id }, relations: { namespace: true } });
    if (!row) throw new ServerNotFoundError();
    return row;
  }
}

function defaultName({ name, namespace }: Server): string {
  return name || namespace.name;
}

function textOf(value: unknown, charsMax: number): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? toStorableText(value.trim().slice(0, charsMax)) : undefined;
}
