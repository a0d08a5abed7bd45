import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { LinkExpiredError, SignedUrls } from '../../../platform/http/signed-urls.js';
import { messagePage, type Page } from '../../../platform/pages/page.js';
import { SetupPageError } from '../../oauth/credentials.errors.js';
import { NotRunnableError, ServerGoneError } from '../../run/run.errors.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ConnectionAuthorizer, type Authorizing, type SetupAnswer } from './connection-authorizer.js';
import { ConnectionCheck } from '../recheck/connection-check.js';
import { connectedPage, formPage } from './connection-setup-page.js';
import {
  authorizationField,
  authorizationForm,
  checkedFields,
  inputForm,
  merged,
  placeAt,
  valuesFault,
  type Place,
} from './setup-form.js';
import { isForClient } from './setup-client.js';
import { scopesAskedFor, statusReasons } from '../core/connection-status.js';
import { ConnectionUrls, setupPath } from '../core/connection-urls.js';
import { ConnectionValues, type StoredValues } from '../core/connection-values.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';

const STEP_UPS_KEPT = 10;

/** A link as a browser shows it. */
export interface SetupLink {
  id: string;
  epoch: number;
  expires?: unknown;
  signature?: unknown;
}

/** The setup page of a connection: authorization, or the values it lacks. A link works until something came of it. */
@Injectable()
export class ConnectionSetupService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly checks: ConnectionCheck,
    private readonly values: ConnectionValues,
    private readonly urls: ConnectionUrls,
    private readonly runs: ServerChannelsService,
    private readonly authorizer: ConnectionAuthorizer,
    private readonly signed: SignedUrls,
  ) {}

  /** What the link shows now; looking at it changes nothing. @throws SetupPageError */
  async view(link: SetupLink): Promise<Page> {
    return this.pageOf(await this.open(link));
  }

  /**
   * Somebody pressed the button: leads to the authorization server, or stores the values and tries them.
   *
   * @param cookie what the browser is known by
   * @throws SetupPageError
   */
  async submit(link: SetupLink, body: URLSearchParams, cookie: string): Promise<SetupAnswer> {
    const row = await this.open(link);
    const place = await this.placeOf(row);
    const isOpen = row.statusState === 'auth_required' || row.statusState === 'input_required';
    if (!place || !isOpen) return { page: await this.pageOf(row), status: 200 };
    if (row.statusState === 'input_required') return this.save(row, place, body);
    const hasValues = [...body.keys()].some((name) => /^(headers|query)\./.test(name));
    if (hasValues && !isForClient(body)) return this.save(row, place, body);
    return this.authorizer.start(this.authorizing(row, place), body, cookie);
  }

  /** After an authorization was stored: old links end, and the connection is tried with it. Never for a deleted one. */
  async authorized(id: string): Promise<void> {
    if (!(await this.connections.manager.transaction((tx) => this.withAuthorization(id, tx)))) return;
    try {
      await this.checks.run(id);
    } catch (error) {
      if (!(error instanceof ResourceNotFoundError)) throw error;
    }
  }

  /** The row as it is with a token of its own. @returns false when it is gone */
  private async withAuthorization(id: string, tx: EntityManager): Promise<boolean> {
    const row = await tx.findOne(Connection, {
      where: { id },
      select: { id: true, statusReason: true, statusChallenges: true, stepUps: true, sealedHeaders: true },
      // A PUT may give other headers at this moment.
      lock: { mode: 'pessimistic_write' },
    });
    if (!row) return false;
    const scopes = scopesAskedFor({ challenges: row.statusChallenges });
    const isStepUp = row.statusReason === 'insufficient_scope';
    // A header of its own would go before the token, and was refused: nobody is asked to authorize otherwise.
    const { authorization: _refused, ...headers } = this.values.openHeaders(id, row.sealedHeaders);
    const stepUps = [...row.stepUps, { at: new Date().toISOString(), scopes }].slice(-STEP_UPS_KEPT);
    await tx
      .createQueryBuilder()
      .update(Connection)
      .set({
        revision: () => 'revision + 1',
        setupEpoch: () => 'setup_epoch + 1',
        sealedHeaders: this.values.sealHeaders(id, headers),
        statusSeenAt: null,
        ...(isStepUp ? { stepUps } : {}),
      })
      .where({ id })
      .execute();
    return true;
  }

  private async open(link: SetupLink): Promise<Connection> {
    const { id, epoch, expires, signature } = link;
    try {
      if (!this.signed.opens(setupPath(id, epoch), { expires, signature })) throw SetupPageError.unknownLink();
    } catch (error) {
      if (!(error instanceof LinkExpiredError)) throw error;
      throw Number(expires) * 1_000 <= Date.now() ? SetupPageError.expiredLink() : SetupPageError.unknownLink();
    }
    const row = await this.connections
      .createQueryBuilder('connection')
      .innerJoinAndSelect('connection.namespace', 'namespace')
      .addSelect(['connection.sealedHeaders', 'connection.sealedQuery', 'connection.statusChallenges'])
      .where('connection.id = :id', { id })
      .getOne();
    if (!row) throw SetupPageError.unknownLink();
    if (row.setupEpoch !== epoch) throw SetupPageError.usedLink();
    return row;
  }

  /** Null when it leads nowhere now. */
  private async placeOf(row: Connection, given = this.givenOf(row)): Promise<Place | null> {
    const label = `${row.namespace.name}/${row.connectionId}`;
    if (row.targetKind === 'url' && row.mcpUrl !== null) return placeAt(label, row.mcpUrl, []);
    if (row.targetKind !== 'server' || row.serverId === null) return null;
    try {
      const { upstream, fields, adapter } = await this.runs.formOf(row.serverId, {
        serverName: row.serverName ?? '',
        ...given,
      });
      return placeAt(label, upstream, fields, adapter);
    } catch (error) {
      if (error instanceof NotRunnableError || error instanceof ServerGoneError) return null;
      throw error;
    }
  }

  private async pageOf(row: Connection): Promise<Page> {
    const place = await this.placeOf(row);
    const { statusState: state, statusReason: reason, statusMessage: message } = row;
    if (place && state === 'input_required') return formPage(inputForm(place, this.actionOf(row)));
    if (place && state === 'auth_required') return this.authorizer.page(this.authorizing(row, place));
    if (state === 'connected')
      return messagePage('Nothing is to be done', 'This connection works. You can close this page.');
    const { nextStep } = statusReasons[reason];
    return messagePage('This page cannot help', `${message ?? 'The connection does not work.'} ${nextStep ?? ''}`);
  }

  private authorizing(row: Connection, place: Place): Authorizing {
    return { row, place, action: this.actionOf(row) };
  }

  private actionOf({ id, setupEpoch }: Connection): string {
    return this.urls.setup(id, setupEpoch);
  }

  /** Values are stored only when they are complete; then they are tried. */
  private async save(row: Connection, place: Place, body: URLSearchParams): Promise<SetupAnswer> {
    const isAsked = row.statusState === 'input_required';
    const asked = isAsked ? place.fields : [...place.fields, authorizationField];
    const given = merged(this.givenOf(row), asked, body);
    const next = (await this.placeOf(row, given)) ?? place;
    const form = isAsked ? inputForm(next, this.actionOf(row)) : authorizationForm(next, this.actionOf(row));
    const fields = checkedFields(next.fields, place.fields);
    const fault = valuesFault(given, isAsked || [...body.values()].some((value) => value !== ''));
    if (fault !== null || fields.some((field) => field.fault !== null)) {
      return { page: formPage({ ...form, fields, fault }), status: 422 };
    }
    await this.store(row, given);
    await this.checks.run(row.id);
    return this.outcome(row.id, place);
  }

  private async store({ id, setupEpoch }: Connection, { headers, query }: StoredValues): Promise<void> {
    const { affected } = await this.connections
      .createQueryBuilder()
      .update()
      .set({
        sealedHeaders: this.values.sealHeaders(id, headers),
        sealedQuery: this.values.sealQuery(id, query),
        revision: () => 'revision + 1',
        setupEpoch: () => 'setup_epoch + 1',
        statusSeenAt: null,
        checkFailures: 0,
      })
      .where({ id, setupEpoch })
      .execute();
    if (!affected) throw SetupPageError.usedLink();
  }

  /** What came of it: the end, or the page with what still lacks, behind its new link. */
  private async outcome(id: string, place: Place): Promise<SetupAnswer> {
    const { setupEpoch } = await this.connections.findOneOrFail({
      where: { id },
      select: { id: true, setupEpoch: true },
    });
    const { searchParams } = new URL(this.urls.setup(id, setupEpoch));
    const row = await this.open({ id, epoch: setupEpoch, ...Object.fromEntries(searchParams) });
    if (row.statusState === 'connected') return { page: connectedPage(place), status: 200 };
    const now = (await this.placeOf(row)) ?? place;
    const fault = `Your values were saved, but the connection does not work with them: ${row.statusMessage ?? ''}`;
    if (row.statusState === 'input_required')
      return { page: formPage({ ...inputForm(now, this.actionOf(row)), fault }), status: 200 };
    if (row.statusState === 'auth_required') {
      return { page: formPage({ ...authorizationForm(now, this.actionOf(row)), fault }), status: 200 };
    }
    return { page: await this.pageOf(row), status: 200 };
  }

  private givenOf(row: Connection): StoredValues {
    const { id, sealedHeaders, sealedQuery } = row;
    return { headers: this.values.openHeaders(id, sealedHeaders), query: this.values.openQuery(id, sealedQuery) };
  }
}
