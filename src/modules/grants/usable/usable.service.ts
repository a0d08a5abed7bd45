/**
 * The result shows no more than a guest can read: no address, text, metadata or header of an MCP server. A key for namespaces lists only
 * their rows. Memberships and grants are read uncached, so revoking one takes effect immediately.
 */
import { Injectable } from '@nestjs/common';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { Caller } from '../../auth/access.types.js';
import { toolsOfAll } from '../../auth/memberships.access.js';
import { namespacesOf } from '../../auth/visible-servers.access.js';
import { CONNECTION_LINKS } from '../../connections/core/connections.access.js';
import { SetupLinksService } from '../../oauth/setup/setup-links.service.js';
import { linkHolderOf } from '../../oauth/setup/setup.types.js';
import { formatQualifiedName } from '../../servers/server.types.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { lastUseOf } from '../grant.dto.js';
import { LastUses } from './last-uses.js';
import type { UsableAccessDto, UsableDto, UsableListDto, UsableQueryDto } from './usable.dto.js';
import { UsableRepository, type UsableKey, type UsableRow } from './usable.repository.js';

@Injectable()
export class UsableService {
  constructor(
    private readonly usableRepository: UsableRepository,
    private readonly lastUses: LastUses,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly setupLinksService: SetupLinksService,
  ) {}

  /** @throws InvalidInputError */
  async list(caller: Caller, query: UsableQueryDto): Promise<UsableListDto> {
    const { section = 'mine', q, owner, state, cursor, limit = 50 } = query;
    const after = cursor === undefined ? undefined : keyOf(cursor);
    await this.lastUses.settle();
    const filter = { section, accountId: caller.accountId, namespaces: namespacesOf(caller), q, owner };
    const [rows, counts] = await Promise.all([
      this.usableRepository.list(filter, { state, after, limit: limit + 1 }),
      this.usableRepository.count(filter),
    ]);
    const page = rows.slice(0, limit);
    const last = page[page.length - 1];
    return {
      usable: page.map((row) => this.toDto(row, caller)),
      counts,
      nextCursor: rows.length > limit && last ? cursorOf(last) : null,
    };
  }

  private toDto(row: UsableRow, caller: Caller): UsableDto {
    const { kind, namespace, name, title, state, reason, since, id, setupEpoch } = row;
    const access = accessOf(row);
    const isWaiting = (state === 'auth_required' || state === 'input_required') && access.level === 'manage';
    const holder = isWaiting ? linkHolderOf(caller, namespace) : null;
    const setupUrl =
      holder &&
      id !== null &&
      setupEpoch !== null &&
      this.setupLinksService.url({ kind: CONNECTION_LINKS, id, epoch: setupEpoch, holder });
    const icons = row.serverInfo?.icons?.filter(({ src }) =>
      (access.level === 'manage' ? /^(https?:\/\/|data:image\/)/ : /^data:image\//).test(src),
    );
    return {
      kind,
      ...(kind === 'server' && { qualifiedName: formatQualifiedName({ namespace, name }) }),
      namespace,
      ...(kind === 'connection' && { connectionId: name }),
      ...(title !== null && { title }),
      iconUrl: kind === 'server' ? this.serverUrlsService.icon({ namespace, name }, row) : (icons?.[0]?.src ?? null),
      owner: { id: row.ownerId, name: row.ownerName },
      access,
      ...(row.connections !== null && { connections: row.connections }),
      ...(row.waiting !== null && { waiting: row.waiting }),
      ...(state !== null &&
        reason !== null &&
        since && { status: { state, reason, since: since.toISOString(), ...(setupUrl && { setupUrl }) } }),
      ...(row.isSuspended && { suspended: true as const }),
      ...lastUseOf(row),
    };
  }
}

function accessOf({ isOwn, role, grants, isPublic }: UsableRow): UsableAccessDto {
  if (isOwn) return { rule: 'owner', level: 'manage' };
  const strongest = grants?.[0];
  if (role === 'owner' || role === 'editor') return { rule: 'member', level: 'manage', role };
  if (role === 'member') return { rule: 'member', level: strongest?.level ?? 'call', role };
  if (!strongest || !grants) throw new Error('The row is opened by no rule');
  const tools = isPublic ? null : toolsOfAll(grants);
  const { id, level, subject, grantedBy, createdAt, expiresAt } = strongest;
  return {
    rule: 'grant',
    level,
    grant: {
      id,
      ...(subject !== null && { subject }),
      ...(grantedBy !== null && { grantedBy }),
      createdAt: new Date(createdAt).toISOString(),
      ...(expiresAt !== null && { expiresAt: new Date(expiresAt).toISOString() }),
    },
    ...(tools && { tools: tools.length }),
  };
}

function cursorOf({ namespace, name, kind }: UsableRow): string {
  return Buffer.from(`${namespace}${name && `/${name}`} ${kind}`).toString('base64url');
}

/** Returns the row key of a cursor. @throws InvalidInputError */
function keyOf(cursor: string): UsableKey {
  const key = Buffer.from(cursor, 'base64url').toString();
  const [, namespace, name = '', kind] =
    /^([!-.0-~]{1,200})(?:\/([!-~]{1,200}))? (connection|server|namespace)$/.exec(key) ?? [];
  if (namespace !== undefined && kind !== undefined) return [namespace, name, kind];
  throw new InvalidInputError('cursor must be the nextCursor of an earlier answer');
}
