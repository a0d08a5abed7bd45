import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { toStorableText } from '../../platform/database/storable.js';
import { formatQualifiedName } from './qualified-name.js';
import { Server } from './server.entity.js';
import type { ServerOffers, ServerSnapshot } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';

/** What a server says of itself that its owner may have left empty. */
export interface FilledFields {
  displayName?: string;
  description?: string;
}

const DESCRIPTION_CHARS_MAX = 2_000;
const TITLE_CHARS_MAX = 255;

/** What publishing changes of a server's record. */
@Injectable()
export class ServerReleasesService {
  constructor(@InjectRepository(Server) private readonly servers: Repository<Server>) {}

  /** Lets nobody else publish to this server until the transaction ends. @throws ServerNotFoundError */
  async lock(id: string, tx: EntityManager): Promise<void> {
    const row = await tx.findOne(Server, { where: { id }, select: { id: true }, lock: { mode: 'pessimistic_write' } });
    if (!row) throw new ServerNotFoundError();
  }

  /** The last segment of its run endpoint. @throws ServerNotFoundError */
  async slugOf(id: string): Promise<string> {
    const row = await this.servers.findOne({ where: { id }, select: { id: true, slug: true } });
    if (!row) throw new ServerNotFoundError();
    return row.slug;
  }

  /** Its name for people: `ns/name`, or `ns`. @throws ServerNotFoundError */
  async qualifiedNameOf(id: string): Promise<string> {
    const row = await this.servers.findOne({ where: { id }, relations: { namespace: true } });
    if (!row) throw new ServerNotFoundError();
    return formatQualifiedName({ namespace: row.namespace.name, name: row.name });
  }

  /** What a server offers through its current release, as far as it is known; null without a successful release. */
  async offersOf(id: string): Promise<ServerOffers | null> {
    const current = await this.currentOf(id);
    if (!current) return null;
    const { serverInfo, tools, resources, resourceTemplates, prompts } = current;
    return { serverInfo, tools, resources, resourceTemplates, prompts };
  }

  /** What is known of a server through its current release; null without one. */
  async currentOf(id: string): Promise<ServerSnapshot | null> {
    const row = await this.servers.findOne({ where: { id }, select: { id: true, snapshot: true } });
    return row?.snapshot ?? null;
  }

  /** What of `info` would fill a field that the owner left empty. @throws ServerNotFoundError */
  async emptyFields(id: string, info: Record<string, unknown>): Promise<FilledFields> {
    const row = await this.servers.findOne({ where: { id }, relations: { namespace: true } });
    if (!row) throw new ServerNotFoundError();
    const displayName = row.displayName === defaultName(row) ? textOf(info.title, TITLE_CHARS_MAX) : undefined;
    const description = row.description === '' ? textOf(info.description, DESCRIPTION_CHARS_MAX) : undefined;
    return { ...(displayName && { displayName }), ...(description && { description }) };
  }

  /** Fills fields that are still empty. */
  async fillIn(id: string, { displayName, description }: FilledFields, tx: EntityManager): Promise<void> {
    if (description !== undefined) await tx.update(Server, { id, description: '' }, { description });
    if (displayName === undefined) return;
    const row = await tx.findOne(Server, { where: { id }, relations: { namespace: true } });
    if (row && row.displayName === defaultName(row)) await tx.update(Server, { id }, { displayName });
  }

  /** Makes a release the one that is run: part of the transaction that publishes or promotes it. */
  async setCurrent(serverId: string, snapshot: ServerSnapshot, tx: EntityManager): Promise<void> {
    const { releaseId: currentReleaseId, type: currentType } = snapshot;
    await tx
      .createQueryBuilder()
      .update(Server)
      .set({ currentReleaseId, currentType, snapshot: () => ':snapshot::jsonb' })
      .where({ id: serverId })
      .setParameter('snapshot', JSON.stringify(snapshot))
      .execute();
  }

  /** Remembers what the security check said of the newest scanned release. */
  async setScan(serverId: string, scanPassed: boolean, tx: EntityManager): Promise<void> {
    await tx.update(Server, { id: serverId }, { scanPassed });
  }
}

/** What a server is called until somebody gives it a name for people. */
function defaultName({ name, namespace }: Server): string {
  return name || namespace.name;
}

function textOf(value: unknown, charsMax: number): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? toStorableText(value.trim().slice(0, charsMax)) : undefined;
}
