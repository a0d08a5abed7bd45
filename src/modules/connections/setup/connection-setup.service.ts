import { Injectable } from '@nestjs/common';
import { withoutWords } from '../../../mcp/protocol/mcp-errors.js';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { AccessService } from '../../auth/access.service.js';
import type { Person } from '../../auth/access.types.js';
import { SetupPageError } from '../../oauth/credentials.errors.js';
import type { BeginAuthorization, CredentialOwner, CredentialOwners } from '../../oauth/credentials.types.js';
import { SetupPageService, type AuthorizationOffer } from '../../oauth/setup/setup-page.service.js';
import {
  knownName,
  type FormView,
  type LinkHolder,
  type PageServer,
  type SetupAnswer,
  type SetupField,
  type SetupLink,
  type SetupPageOwner,
  type SetupView,
} from '../../oauth/setup/setup.types.js';
import type { RunFormField, StoredValues } from '../../releases/releases.types.js';
import { NotRunnableError, ServerGoneError } from '../../run/run.errors.js';
import { AccessRequiredError } from '../../servers/servers.errors.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { requestedScopes } from '../core/connection-status.js';
import { ConnectionValues } from '../core/connection-values.js';
import { Connection } from '../core/connection.entity.js';
import { ConnectionsRepository } from '../core/connection.repository.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { ConnectionCheck } from '../recheck/connection-check.js';
import {
  checkedFields,
  keyFieldsFor,
  keyIn,
  leaveDefaults,
  mergedValues,
  nameInForm,
  NO_KEY,
  takesKey,
  valuesFault,
  type EnteredKey,
} from './setup-form.js';

const STEP_UPS_STORED_MAX = 10;

interface SetupTarget extends PageServer {
  /** Null for code that runs here and does not authorize users. */
  upstreamUrl: string | null;
  /** The server whose code, running here, authorizes its users; `upstreamUrl` is then not an address. */
  adapter?: string;
  fields: RunFormField[];
}

/** The setup page of a connection: authorization, or a form for missing values. Storing either revokes the link. */
@Injectable()
export class ConnectionSetupService implements SetupPageOwner<Connection>, CredentialOwners {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly connectionCheck: ConnectionCheck,
    private readonly connectionValues: ConnectionValues,
    private readonly serverChannelsService: ServerChannelsService,
    private readonly setupPageService: SetupPageService,
    private readonly accessService: AccessService,
  ) {}

  isAuthorizationPending(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async mayAuthorize(id: string, person: Person): Promise<boolean> {
    const row = await this.connectionsRepository.findForSetup(id);
    return row !== null && this.mayUse(row, person);
  }

  async presentation(id: string): ReturnType<CredentialOwners['presentation']> {
    const row = await this.connectionsRepository.findForSetup(id);
    if (!row) return {};
    const { name, title, description, iconUrl } = (await this.targetOf(row)) ?? namesOf(row);
    return { name, title, description, iconUrl };
  }

  async open({ id, epoch }: Pick<SetupLink, 'id' | 'epoch'>): Promise<Connection> {
    const row = await this.connectionsRepository.findForSetup(id);
    if (!row) throw SetupPageError.unknownLink();
    if (row.setupEpoch !== epoch) throw SetupPageError.usedLink();
    return row;
  }

  mayUse({ namespace, connectionId }: Connection, person: Person): Promise<boolean> {
    const { accountId: ownerId, name } = namespace;
    const target = { ownerId, namespace: name, kind: 'connection' as const, name: connectionId };
    return this.accessService.mayUse(person, 'manage', target);
  }

  async view(row: Connection): Promise<SetupView> {
    const target = await this.targetOf(row);
    const { statusState: state } = row;
    if (target && state === 'input_required') return this.valuesForm(row, target);
    if (target && mayAuthorize(row)) return this.setupPageService.view(this.authorization(row, target));
    if (state === 'connected') {
      return { kind: 'message', title: 'No action needed', text: 'Everything works. You can close this page.' };
    }
    const name = target ? knownName(target) : row.name;
    return {
      kind: 'message',
      title: `${name} does not work at the moment`,
      text: 'You can do nothing about it on this page. Tell whoever gave you the link, or open it again later.',
      note: row.statusMessage === null ? undefined : withoutWords(row.statusMessage),
    };
  }

  async submit(row: Connection, form: URLSearchParams, cookie: string, holder: LinkHolder): Promise<SetupAnswer> {
    const target = await this.targetOf(row);
    const isOpen = mayAuthorize(row) || row.statusState === 'input_required';
    if (!target || !isOpen) return { view: await this.view(row), status: 200 };
    leaveDefaults(target.fields, form);
    const isForValues =
      row.statusState === 'input_required' ||
      (this.setupPageService.hasValues(form) && !this.setupPageService.isForClient(form));
    if (isForValues) return this.save(row, target, form);
    return this.setupPageService.submit(this.authorization(row, target), form, cookie, holder);
  }

  /** Returns the authorization that a connection begins on its page; null without an authorization server. */
  async loginOf(id: string): Promise<{ owner: CredentialOwner; request: BeginAuthorization } | null> {
    const row = await this.connectionsRepository.findForSetup(id);
    const target = row && (await this.targetOf(row));
    const { owner, request } = target ? this.authorization(row, target) : { owner: null, request: null };
    return owner && request && { owner, request };
  }

  /** Revokes older links and checks the connection. Does nothing for a deleted one. */
  async handleAuthorization(id: string): Promise<void> {
    if (!(await this.connectionRepository.manager.transaction((tx) => this.useAuthorization(id, tx)))) return;
    try {
      await this.connectionCheck.run(id);
    } catch (error) {
      if (!(error instanceof ResourceNotFoundError)) throw error;
    }
  }

  /**
   * Removes the connection's own `Authorization` header, which would be sent instead of the token.
   *
   * @returns false if deleted
   */
  private async useAuthorization(id: string, tx: EntityManager): Promise<boolean> {
    const row = await tx.findOne(Connection, {
      where: { id },
      select: { id: true, statusReason: true, statusChallenges: true, stepUps: true, sealedHeaders: true },
      lock: { mode: 'pessimistic_write' },
    });
    if (!row) return false;
    const { authorization: _refused, ...headers } = this.connectionValues.openHeaders(id, row.sealedHeaders);
    const scopes = requestedScopes({ challenges: row.statusChallenges });
    const stepUps = [...row.stepUps, { at: new Date().toISOString(), scopes }].slice(-STEP_UPS_STORED_MAX);
    const change = {
      sealedHeaders: this.connectionValues.sealHeaders(id, headers),
      ...(row.statusReason === 'insufficient_scope' && { stepUps }),
    };
    return this.connectionsRepository.update(id, change, { endLinks: true }, tx);
  }

  private async targetOf(row: Connection, values = this.valuesOf(row)): Promise<SetupTarget | null> {
    const label = `${row.namespace.name}/${row.connectionId}`;
    const url = row.targetKind === 'url' ? this.connectionValues.openUrl(row) : null;
    if (url !== null) return { ...namesOf(row), ...targetAt(label, url, []) };
    // The server of a mock is never contacted, not even for authorization.
    if (row.targetKind !== 'server' || row.serverId === null || row.mock !== null) return null;
    try {
      const { accountId } = row.namespace;
      const connection = { accountId, serverName: row.serverName ?? '', ...values };
      const form = await this.serverChannelsService.formOf(row.serverId, connection);
      const target = targetAt(label, form.upstream, form.fields, form.adapter);
      return { name: namesOf(row).name, ...form.presentation, ...target };
    } catch (error) {
      const isClosed = error instanceof ServerGoneError || error instanceof AccessRequiredError;
      if (isClosed || error instanceof NotRunnableError) return null;
      throw error;
    }
  }

  private authorization(row: Connection, target: SetupTarget): AuthorizationOffer {
    const { upstreamUrl, label, adapter } = target;
    return {
      owner: { kind: 'connection', id: row.id },
      request:
        upstreamUrl === null
          ? null
          : {
              upstreamUrl,
              challenge: row.statusChallenges,
              label,
              adapter,
              ...(row.oauth && { oauth: { ...row.oauth, sealedSecret: row.sealedOauthSecret } }),
            },
      form: this.formOf(row, target),
    };
  }

  private valuesForm(row: Connection, target: SetupTarget, entered?: EnteredKey): FormView {
    const form = this.formOf(row, target, entered);
    if (row.statusState === 'auth_required') return this.setupPageService.valuesForm(form);
    return { ...form, kind: 'form', reason: 'It needs something from you:', client: null, fault: null };
  }

  private formOf(row: Connection, target: SetupTarget, entered?: EnteredKey): AuthorizationOffer['form'] {
    const { label, upstreamHost, name, title, description, iconUrl } = target;
    const fields: SetupField[] = target.fields.map((field) => ({ ...field, name: nameInForm(field) }));
    if (takesKey(row.statusState, target.fields)) fields.push(...keyFieldsFor(entered));
    return { label, upstreamHost, name, title, description, iconUrl, epoch: row.setupEpoch, fields };
  }

  private async save(row: Connection, target: SetupTarget, form: URLSearchParams): Promise<SetupAnswer> {
    const key = takesKey(row.statusState, target.fields) ? keyIn(form) : NO_KEY;
    const values = mergedValues(this.valuesOf(row), target.fields, form, key);
    const next = (await this.targetOf(row, values)) ?? target;
    const fields = checkedFields(next.fields, target.fields, values);
    const view = this.valuesForm(row, { ...next, fields }, key);
    const isEmpty = key.value === '' && target.fields.every((field) => !form.get(nameInForm(field)));
    const hasFault = view.fields.some((field) => field.fault !== null);
    const fault = isEmpty && row.statusState === 'auth_required' ? 'Nothing was filled in.' : valuesFault(values);
    if (hasFault || fault !== null) return { view: { ...view, fault: hasFault ? null : fault }, status: 422 };
    const { id, setupEpoch } = row;
    const change = {
      sealedHeaders: this.connectionValues.sealHeaders(id, values.headers),
      sealedQuery: this.connectionValues.sealQuery(id, values.query),
    };
    if (!(await this.connectionsRepository.update(id, change, { endLinks: true, setupEpoch })))
      throw SetupPageError.usedLink();
    await this.connectionCheck.run(id);
    return { view: await this.outcome(id, target, key.header), status: 200 };
  }

  /** Returns the page after a form: success, or the form with the next link. */
  private async outcome(id: string, before: SetupTarget, header: string): Promise<SetupView> {
    const row = await this.connectionsRepository.findForSetup(id);
    if (!row) throw SetupPageError.unknownLink();
    const { label, upstreamHost, name, title } = before;
    if (row.statusState === 'connected') return { kind: 'connected', label, upstreamHost, name, title };
    if (row.statusState !== 'input_required' && row.statusState !== 'auth_required') return this.view(row);
    const target = (await this.targetOf(row)) ?? before;
    const fault = `Your values were saved, but ${knownName(target)} does not accept them. Check them, and enter them again.`;
    const form = this.valuesForm(row, target, { ...NO_KEY, header });
    return { ...form, fault, note: withoutWords(row.statusMessage ?? '') || undefined };
  }

  private valuesOf({ id, sealedHeaders, sealedQuery }: Connection): StoredValues {
    return {
      headers: this.connectionValues.openHeaders(id, sealedHeaders),
      query: this.connectionValues.openQuery(id, sealedQuery),
    };
  }
}

/** Returns true while the connection waits for an authorization, and while its stored one returns no token. */
function mayAuthorize({ statusState, statusReason }: Connection): boolean {
  return statusState === 'auth_required' || statusReason === 'authorization_unavailable';
}

function targetAt(label: string, upstreamUrl: string | null, fields: RunFormField[], adapter?: string): SetupTarget {
  const isHere = upstreamUrl === null || adapter !== undefined;
  const upstreamHost = isHere ? 'this service' : new URL(upstreamUrl).host;
  return { label, upstreamUrl, upstreamHost, fields, ...(adapter !== undefined && { adapter }) };
}

/** Returns the names for the page, with a `data:` icon, which needs no request. */
function namesOf({ name: ownName, connectionId, serverInfo }: Connection): Omit<PageServer, 'label' | 'upstreamHost'> {
  const { title, name, description, icons = [] } = serverInfo ?? { name: '' };
  const icon = icons.find(({ src }) => src.startsWith('data:image/'));
  return {
    name: ownName === connectionId ? undefined : ownName,
    title: title || name || undefined,
    description,
    iconUrl: icon?.src,
  };
}
