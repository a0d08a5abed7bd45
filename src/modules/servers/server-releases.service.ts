import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { formatQualifiedName } from './qualified-name.js';
import { Server } from './server.entity.js';
import type { ServerSnapshot } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';

/** What a server says of itself that its owner may have left empty. */
export interface FilledFields {
  description?: string;
}

const DESCRIPTION_CHARS_MAX = 2_000;

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

  /** What of `info` would fill a field that the owner left empty. @throws ServerNotFoundError */
  async emptyFields(id: string, info: Record<string, unknown>): Promise<FilledFields> {
    const row = await this.servers.findOne({ where: { id }, select: { id: true, description: true } });
    if (!row) throw new ServerNotFoundError();
    const { description } = info;
    if (row.description !== '' || typeof description !== 'string' || description.trim() === '') return {};
    return { description: description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed() };
  }

  /** Fills fields that are still empty. */
  async fillIn(id: string, { description }: FilledFields, tx: EntityManager): Promise<void> {
    if (description !== undefined) await tx.update(Server, { id, description: '' }, { description });
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
