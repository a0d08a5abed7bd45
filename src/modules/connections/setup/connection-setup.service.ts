import { Injectable, type OnModuleInit } from '@nestjs/common';
import { withoutWords } from '../../../mcp/protocol/mcp-errors.js';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { SetupPageError } from '../../oauth/credentials.errors.js';
import { SetupLinksService } from '../../oauth/setup/setup-links.service.js';
import { SetupPageService, type AuthorizationSubject } from '../../oauth/setup/setup-page.service.js';
import type { FormView, SetupAnswer, SetupLink, SetupSubject, SetupView } from '../../oauth/setup/setup.types.js';
import type { RunFormField, StoredValues } from '../../releases/releases.types.js';
import { NotRunnableError, ServerGoneError } from '../../run/run.errors.js';
import { ServerChannelsService, type Presentation } from '../../run/server-channels.service.js';
import { requestedScopes, statusReasons } from '../core/connection-status.js';
import { CONNECTION_LINKS, ConnectionUrls } from '../core/connection-urls.js';
import { ConnectionValues } from '../core/connection-values.js';
import { Connection } from '../core/connection.entity.js';
import { ConnectionRepository } from '../core/connection.repository.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { ConnectionCheck } from '../recheck/connection-check.js';
import { headersFault, queryFault } from '../core/connection.validators.js';

/** Newest step-ups that a row stores. */
const STEP_UPS_STORED_MAX = 10;

/** The target of a connection, and those of its values that a person may enter. */
interface SetupTarget extends Presentation {
  /** `namespace/connectionId` */
  label: string;
  /** The host of the upstream, or words for code that runs here. */
  upstreamHost: string;
  /** Null for code that runs here and authorizes nobody. */
  upstreamUrl: string | null;
  /** The server whose code, running here, authorizes its users; its URL is not an address then. */
  adapter?: string;
  fields: RunFormField[];
}

/** For servers that require a key or token and have no authorization server. */
const authorizationField: RunFormField = {
  place: 'headers',
  name: 'Authorization',
  label: 'Authorization',
  description: 'The whole value of the header, for example “Bearer” and your token.',
  isRequired: false,
  isSecret: true,
  allowed: null,
  control: 'line',
  limits: {},
  isStored: false,
  isMissing: false,
  fault: null,
};

/** The setup page of a connection: authorization, or a form for missing values. A link ends when either was stored. */
@Injectable()
export class ConnectionSetupService implements SetupSubject<Connection>, OnModuleInit {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly repository: ConnectionRepository,
    private readonly checks: ConnectionCheck,
    private readonly values: ConnectionValues,
    private readonly urls: ConnectionUrls,
    private readonly servers: ServerChannelsService,
    private readonly credentials: CredentialsService,
    private readonly links: SetupLinksService,
    private readonly pages: SetupPageService,
  ) {}

  onModuleInit(): void {
    this.links.register(CONNECTION_LINKS, this);
    this.credentials.onAuthorized('connection', (id) => this.authorized(id));
  }

  async open({ id, epoch }: SetupLink): Promise<Connection> {
    const row = await this.repository.findForSetup(id);
    if (!row) throw SetupPageError.unknownLink();
    if (row.setupEpoch !== epoch) throw SetupPageError.usedLink();
    return row;
  }

  async view(row: Connection): Promise<SetupView> {
    const target = await this.targetOf(row);
    const { statusState: state, statusReason: reason } = row;
    const message = row.statusMessage && withoutWords(row.statusMessage);
    if (target && state === 'input_required') return this.valuesForm(row, target);
    if (target && state === 'auth_required') return this.pages.view(this.authorization(row, target));
    if (state === 'connected') {
      const text = 'This connection works. You can close this page.';
      return { kind: 'message', title: 'No action needed', text };
    }
    const { nextStep } = statusReasons[reason];
    const text = `${message ?? 'The connection does not work.'} ${nextStep ?? ''}`;
    return { kind: 'message', title: 'Setup is not possible here', text };
  }

  async submit(row: Connection, form: URLSearchParams, cookie: string): Promise<SetupAnswer> {
    const target = await this.targetOf(row);
    const isOpen = row.statusState === 'auth_required' || row.statusState === 'input_required';
    if (!target || !isOpen) return { view: await this.view(row), status: 200 };
    leaveDefaults(target.fields, form);
    const hasValues = [...form.keys()].some((name) => /^(headers|query)\./.test(name));
    const isForValues = row.statusState === 'input_required' || (hasValues && !this.pages.isForClient(form));
    return isForValues
      ? this.save(row, target, form)
      : this.pages.submit(this.authorization(row, target), form, cookie);
  }

  /** After an authorization was stored: ends older links and checks the connection. Does nothing for a deleted one. */
  private async authorized(id: string): Promise<void> {
    if (!(await this.connections.manager.transaction((tx) => this.useAuthorization(id, tx)))) return;
    try {
      await this.checks.run(id);
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
      // A concurrent PUT may change the headers.
      lock: { mode: 'pessimistic_write' },
    });
    if (!row) return false;
    const { authorization: _refused, ...headers } = this.values.openHeaders(id, row.sealedHeaders);
    const scopes = requestedScopes({ challenges: row.statusChallenges });
    const stepUps = [...row.stepUps, { at: new Date().toISOString(), scopes }].slice(-STEP_UPS_STORED_MAX);
    const change = {
      sealedHeaders: this.values.sealHeaders(id, headers),
      ...(row.statusReason === 'insufficient_scope' && { stepUps }),
    };
    return this.repository.update(id, change, { endLinks: true }, tx);
  }

  /** Null if no upstream can be called now. */
  private async targetOf(row: Connection, values = this.valuesOf(row)): Promise<SetupTarget | null> {
    const label = `${row.namespace.name}/${row.connectionId}`;
    const url = row.targetKind === 'url' ? this.values.openUrl(row) : null;
    if (url !== null) return { ...presentationOf(row), ...targetAt(label, url, []) };
    if (row.targetKind !== 'server' || row.serverId === null) return null;
    try {
      const { accountId } = row.namespace;
      const connection = { accountId, serverName: row.serverName ?? '', ...values };
      const { upstream, fields, adapter, presentation } = await this.servers.formOf(row.serverId, connection);
      return { ...presentation, ...targetAt(label, upstream, fields, adapter) };
    } catch (error) {
      if (error instanceof NotRunnableError || error instanceof ServerGoneError) return null;
      throw error;
    }
  }

  private authorization(row: Connection, target: SetupTarget): AuthorizationSubject {
    const { upstreamUrl, label, adapter, fields } = target;
    return {
      owner: { kind: 'connection', id: row.id },
      request: upstreamUrl === null ? null : { upstreamUrl, challenge: row.statusChallenges, label, adapter },
      form: formOf(target, withAuthorizationField(fields), this.linkTo(row)),
    };
  }

  /** The form for missing or invalid values, or, where authorization is needed, for values instead of it. */
  private valuesForm(row: Connection, target: SetupTarget, fields = this.fieldsFor(row, target)): FormView {
    const form = formOf(target, fields, this.linkTo(row));
    if (row.statusState === 'auth_required') return this.pages.valuesForm(form);
    const reason = 'The server requires configuration values:';
    return { ...form, kind: 'form', reason, client: null, fault: null };
  }

  private fieldsFor({ statusState }: Connection, { fields }: SetupTarget): RunFormField[] {
    return statusState === 'auth_required' ? withAuthorizationField(fields) : fields;
  }

  private linkTo({ id, setupEpoch }: Connection): string {
    return this.urls.setup(id, setupEpoch);
  }

  /** Stores values if they are complete, and checks the connection with them. */
  private async save(row: Connection, target: SetupTarget, form: URLSearchParams): Promise<SetupAnswer> {
    const values = mergedValues(this.valuesOf(row), this.fieldsFor(row, target), form);
    const next = (await this.targetOf(row, values)) ?? target;
    const fields = checkedFields(this.fieldsFor(row, next), this.fieldsFor(row, target));
    const isEmpty = row.statusState === 'auth_required' && ![...form.values()].some((value) => value !== '');
    const fault = isEmpty ? 'Nothing was filled in.' : valuesFault(values);
    if (fault !== null || fields.some((field) => field.fault !== null)) {
      return { view: { ...this.valuesForm(row, next, fields), fault }, status: 422 };
    }
    const { id, setupEpoch } = row;
    const change = {
      sealedHeaders: this.values.sealHeaders(id, values.headers),
      sealedQuery: this.values.sealQuery(id, values.query),
    };
    if (!(await this.repository.update(id, change, { endLinks: true, setupEpoch }))) throw SetupPageError.usedLink();
    await this.checks.run(id);
    return { view: await this.outcome(id, target), status: 200 };
  }

  /** The page after values were stored: success, or the form with the next link. */
  private async outcome(id: string, before: SetupTarget): Promise<SetupView> {
    const row = await this.repository.findForSetup(id);
    if (!row) throw SetupPageError.unknownLink();
    const { label, upstreamHost } = before;
    if (row.statusState === 'connected') return { kind: 'connected', label, upstreamHost };
    if (row.statusState !== 'input_required' && row.statusState !== 'auth_required') return this.view(row);
    const target = (await this.targetOf(row)) ?? before;
    const fault = `Your values were saved, but the connection does not work with them: ${withoutWords(row.statusMessage ?? '')}`;
    return { ...this.valuesForm(row, target), fault };
  }

  private valuesOf({ id, sealedHeaders, sealedQuery }: Connection): StoredValues {
    return { headers: this.values.openHeaders(id, sealedHeaders), query: this.values.openQuery(id, sealedQuery) };
  }
}

function targetAt(label: string, upstreamUrl: string | null, fields: RunFormField[], adapter?: string): SetupTarget {
  const isHere = upstreamUrl === null || adapter !== undefined;
  const upstreamHost = isHere ? 'code hosted here' : new URL(upstreamUrl).host;
  return { label, upstreamUrl, upstreamHost, fields, ...(adapter !== undefined && { adapter }) };
}

/** The fields with one for the `Authorization` header, if none of them is. */
function withAuthorizationField(fields: RunFormField[]): RunFormField[] {
  const hasOne = fields.some(({ place, name }) => place === 'headers' && /^authorization$/i.test(name));
  return hasOne ? fields : [...fields, authorizationField];
}

/** The form of a target, with these fields instead of its own. */
function formOf(
  { label, upstreamHost, title, description, iconUrl }: SetupTarget,
  fields: RunFormField[],
  action: string,
): AuthorizationSubject['form'] {
  const inForm = fields.map((field) => ({ ...field, name: nameInForm(field) }));
  return { label, upstreamHost, title, description, iconUrl, action, fields: inForm };
}

/** Title and description that an MCP server reports, and its icon if it is a `data:` URL, which needs no request. */
function presentationOf({ serverInfo }: Connection): Presentation {
  const { title, name, description, icons = [] } = serverInfo ?? { name: '' };
  const icon = icons.find(({ src }) => src.startsWith('data:image/'));
  return { title: title || name || undefined, description, iconUrl: icon?.src };
}

/** Empties fields that show the default of the schema: it applies without being stored. */
function leaveDefaults(fields: RunFormField[], form: URLSearchParams): void {
  for (const field of fields) {
    const name = nameInForm(field);
    if (!field.isStored && form.get(name)?.replaceAll('\r\n', '\n') === field.fallback) form.set(name, '');
  }
}

function nameInForm({ place, name }: Pick<RunFormField, 'place' | 'name'>): string {
  return `${place}.${name}`;
}

/** The fields after a submission, with their faults. `isStored` is that of the stored values, not of the submitted ones. */
function checkedFields(submitted: RunFormField[], stored: RunFormField[]): RunFormField[] {
  return submitted.map((field) => ({
    ...field,
    isStored: stored.some(({ place, name, isStored }) => place === field.place && name === field.name && isStored),
    fault: field.isMissing ? 'This value is required.' : field.fault,
  }));
}

/** The stored values with the submitted ones. An empty field keeps the stored value; names outside `fields` are ignored. */
function mergedValues({ headers, query }: StoredValues, fields: RunFormField[], form: URLSearchParams): StoredValues {
  const next: StoredValues = { headers: { ...headers }, query: [...query] };
  for (const field of fields) {
    const value = form.get(nameInForm(field))?.replaceAll('\r\n', '\n').trim();
    if (value === undefined || value === '') continue;
    if (field.place === 'headers') next.headers[field.name.toLowerCase()] = value;
    else next.query = [...next.query.filter(([name]) => name !== field.name), [field.name, value]];
  }
  return next;
}

/** The fault of the values as a whole, in a sentence; null without one. */
function valuesFault({ headers, query }: StoredValues): string | null {
  const fault = headersFault(headers);
  if (fault !== null) return `The headers ${fault}.`;
  const ofQuery = queryFault(query);
  return ofQuery === null ? null : `The query values ${ofQuery}.`;
}
