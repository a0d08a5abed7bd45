/**
 * Finds out why a connection does not work, in steps with one line of evidence each, up to the first failure.
 *
 * Network steps use their own socket and send no request (`probes.ts`). The outcome becomes the connection's status. If the server requires
 * authorization, `discovery`, `client` and `token` show how far it gets without a person.
 *
 * A diagnosis takes at most 20 s; 8 run concurrently, 3 of them for one account (503 beyond). Evidence never contains the secrets that the
 * connection sends, nor the address of a registry server, which only its publisher can see.
 */
import { Injectable } from '@nestjs/common';
import { UpstreamTimeoutError } from '../../../mcp/protocol/mcp-errors.js';
import { deadlineIn, withinDeadline } from '../../../mcp/protocol/deadline.js';
import { Egress } from '../../../platform/egress/egress.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { AuthorizationsService } from '../../oauth/authorizations.service.js';
import { NoAuthorizationServerError, OAuthClientNeededError, OAuthSetupError } from '../../oauth/credentials.errors.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ServerGoneError } from '../../run/run.errors.js';
import { ConnectionTransports } from '../core/connection-transports.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ConnectionUrls } from '../core/connection-urls.js';
import { ConnectionReader } from '../core/connection-reader.js';
import { statusAfter, type StatusReason } from '../core/connection-status.js';
import type { ConnectionTarget } from '../core/connection.entity.js';
import { ConnectionSetupService } from '../setup/connection-setup.service.js';
import { StatusRecorder } from '../core/status-recorder.js';
import { DiagnosisLog, StepFailedError } from './diagnosis-log.js';
import type { DiagnosisDto, DiagnosisStepName } from './diagnosis.dto.js';
import { probeSession, probeTools, NetworkProbe, type NetworkPlace } from './probes.js';

const DIAGNOSIS_MS_MAX = 20_000;

const CONCURRENT_MAX = 8;
const CONCURRENT_EACH_MAX = 3;
const SLOT_WAIT_MS = 5_000;

const network = ['target', 'dns', 'guard', 'connect', 'tls', 'http', 'era', 'authorization', 'list'] as const;

const networkSteps = ['dns', 'guard', 'connect', 'tls'] as const;

const planned: Record<ConnectionTarget['kind'], readonly DiagnosisStepName[]> = {
  url: network,
  server: network,
  mock: ['target', 'era', 'list'],
  source: ['target', 'era', 'list'],
  uplink: ['target', 'tunnel', 'era', 'list'],
};

@Injectable()
export class DiagnosisService {
  private readonly slots = new KeyedLimiter(CONCURRENT_EACH_MAX, CONCURRENT_MAX, SLOT_WAIT_MS);
  private readonly running = new Map<string, Promise<DiagnosisDto>>();

  constructor(
    private readonly connectionHandles: ConnectionHandles,
    private readonly connectionTransports: ConnectionTransports,
    private readonly statusRecorder: StatusRecorder,
    private readonly connectionReader: ConnectionReader,
    private readonly serverChannelsService: ServerChannelsService,
    private readonly egress: Egress,
    private readonly connectionUrls: ConnectionUrls,
    private readonly connectionSetupService: ConnectionSetupService,
    private readonly authorizationsService: AuthorizationsService,
    private readonly credentialsService: CredentialsService,
  ) {}

  /**
   * Diagnoses a connection. Concurrent requests share one diagnosis.
   *
   * @throws ResourceNotFoundError, NoSlotError
   */
  async diagnose(namespace: OwnedNamespace, connectionId: string, caller: Caller): Promise<DiagnosisDto> {
    const target = await this.connectionHandles.target(namespace, connectionId);
    let running = this.running.get(target.id);
    if (!running) {
      running = this.slots
        .run(caller.accountId, () => this.run(namespace, target))
        .finally(() => this.running.delete(target.id));
      this.running.set(target.id, running);
    }
    const diagnosis = await running;
    // The shared result has no setup link.
    const { setupUrl, authorizationUrl } = (await this.connectionReader.get(namespace, connectionId, caller)).status;
    return { ...diagnosis, status: { ...diagnosis.status, setupUrl, authorizationUrl } };
  }

  private async run(namespace: OwnedNamespace, target: ConnectionTarget): Promise<DiagnosisDto> {
    const log = new DiagnosisLog(target);
    const observer = this.statusRecorder.observer(target);
    const msLeft = deadlineIn(DIAGNOSIS_MS_MAX);
    let failed: StepFailedError | null = null;
    try {
      const isInNetwork = target.kind === 'url' || target.kind === 'server';
      switch (target.kind) {
        case 'url':
        case 'server': {
          const place = await this.placeOf(target, log);
          if (place) await new NetworkProbe(this.egress, place, log, msLeft).run();
          else for (const step of networkSteps) log.skip(step, 'The server is hosted here: no network is used.');
          const fresh = this.connectionTransports.channelTo(target);
          await probeSession(fresh, log, msLeft, { overHttp: true }).finally(() => fresh.close());
          break;
        }
        case 'mock':
          log.ok('target', `The connection simulates ${target.serverName}: no server is contacted.`);
          break;
        case 'source':
          log.ok('target', 'The target is a module that is stored here.');
          break;
        case 'uplink':
          await this.probeTunnel(namespace, target, log, msLeft);
      }
      // Lists in the session that calls use: a server that opens a new one might have lost that.
      const channel = await this.connectionHandles.find(namespace, target.connectionId);
      // A channel other than that of calls could start another program.
      if (!isInNetwork) await probeSession(channel, log, msLeft, { overHttp: false });
      await probeTools(channel, log, msLeft);
      observer.succeeded();
    } catch (error) {
      if (!(error instanceof StepFailedError)) throw error;
      failed = error;
      const status = statusAfter(error.reason);
      if (status) observer.failed(status);
    }
    const { status } = await this.connectionReader.get(namespace, target.connectionId, null);
    const { connectionId, kind } = target;
    const obstacle = failed && (await this.probeLogin(target, failed.reason, log, msLeft));
    log.skipRest(planned[kind]);
    if (!obstacle) {
      return {
        connectionId,
        target: kind,
        steps: log.steps,
        verdict: verdictOf(target, failed, log, this.connectionUrls),
        status,
      };
    }
    const verdict = `It stops at ${obstacle.step}: ${lowerFirst(obstacle.nextStep)}`;
    return {
      connectionId,
      target: kind,
      steps: log.steps,
      verdict,
      status: { ...status, nextStep: obstacle.nextStep },
    };
  }

  /** @returns the step at which an authorization would stop; null if an authorization can begin */
  private async probeLogin(
    target: ConnectionTarget,
    reason: Error,
    log: DiagnosisLog,
    msLeft: () => number,
  ): Promise<{ step: DiagnosisStepName; nextStep: string } | null> {
    const code = statusAfter(reason)?.reason;
    const login = code && LOGINS.has(code) ? await this.connectionSetupService.loginOf(target.id) : null;
    if (!login) return null;
    const { owner, request } = login;
    // Only the publisher can see the address of a registry server.
    const hideHost = (text: string) =>
      target.kind === 'server' ? text.replaceAll(new URL(request.upstreamUrl).host, target.serverName) : text;
    const probe = async (work: Promise<string>) =>
      hideHost(await withinDeadline(work, msLeft(), 'The authorization server did not answer in time.'));
    const toFailure = (error: unknown) => {
      if (!(error instanceof OAuthSetupError || error instanceof UpstreamTimeoutError)) throw error;
      return new OAuthSetupError(hideHost(error.message), error);
    };
    const discover = async () => {
      const { server, scopes } = await this.authorizationsService.preview(owner, request);
      return `The authorization server is ${server.adapter ?? server.issuer}, asked for ${scopes ?? 'no certain scopes'}.`;
    };
    try {
      const startedAt = performance.now();
      const outcome = await probe(discover()).catch(toFailure);
      const ms = performance.now() - startedAt;
      if (typeof outcome === 'string') log.ok('discovery', outcome, ms);
      else if (!(outcome.detail instanceof NoAuthorizationServerError)) log.fail('discovery', outcome, ms);
      else {
        // The setup page accepts a key.
        log.skip('discovery', outcome.message);
        log.skipRest(LOGIN_STEPS);
        return null;
      }
      await log.run('client', () => probe(this.authorizationsService.clientFor(owner, request)), toFailure);
      if (code === 'authorization_ended' || code === 'authorization_unavailable') log.fail('token', reason);
      const token = this.credentialsService.cachedToken(owner, request.upstreamUrl);
      if (!token) log.skip('token', 'Nobody has logged in yet.');
      else log.fail('token', new OAuthSetupError('A token is stored, and the MCP server does not accept it.'));
      return null;
    } catch (error) {
      if (!(error instanceof StepFailedError)) throw error;
      const { step } = error;
      const cause = (error.reason as OAuthSetupError).detail;
      log.skipRest(LOGIN_STEPS);
      // The setup page asks for a client.
      const isOpen = step === 'token' || cause instanceof OAuthClientNeededError;
      return isOpen ? null : { step, nextStep: loginAdvice[step] ?? '' };
    }
  }

  private async placeOf(
    target: ConnectionTarget & { kind: 'url' | 'server' },
    log: DiagnosisLog,
  ): Promise<NetworkPlace | null> {
    if (target.kind === 'url') {
      const url = new URL(target.url);
      log.ok('target', `The target is the MCP server at ${url.host}.`);
      return { url, alias: null };
    }
    const { serverId, serverName } = target;
    if (serverId === null) log.fail('target', new ServerGoneError(serverName));
    const url = await this.serverChannelsService
      .upstreamOf(serverId, target)
      .catch((error: Error) => log.fail('target', error));
    const where = url ? 'which has a release that runs' : 'which is hosted here';
    log.ok('target', `The target is the registry server ${serverName}, ${where}.`);
    return url && { url, alias: serverName };
  }

  private async probeTunnel(
    namespace: OwnedNamespace,
    target: ConnectionTarget,
    log: DiagnosisLog,
    msLeft: () => number,
  ): Promise<void> {
    log.ok('target', 'The target is a local server, over a tunnel that the command line tool opens.');
    const channel = await this.connectionHandles.find(namespace, target.connectionId);
    const isPaired = async () => {
      const { status } = await this.connectionReader.get(namespace, target.connectionId, null);
      await channel.open(msLeft()).catch((error: Error) => {
        if (statusAfter(error)?.state === 'disconnected') throw error;
      });
      return status.state === 'connected'
        ? `A local server is paired; connected since ${status.since}.`
        : 'A local server is paired.';
    };
    await log.run('tunnel', isPaired, (error) => error as Error);
  }
}

/** Advice for each step, unless the status has more precise advice. */
const advice: Partial<Record<DiagnosisStepName, string>> = {
  dns: 'check the host name, and that DNS of the service knows it.',
  guard: 'use a public address, or ask the operator to allow this one in EGRESS_ALLOW.',
  connect: 'start the MCP server, and check host and port of mcpUrl.',
  tls: 'give the server a certificate that is valid for its host name, or check whether its URL begins with http://.',
  http: 'read the log of the MCP server, and check the path of mcpUrl.',
  era: 'check that the address is that of an MCP server, and update the server.',
  list: 'read the log of the MCP server: it does not answer the list of tools.',
};

const LOGIN_STEPS = ['discovery', 'client', 'token'] as const;

const LOGINS: ReadonlySet<StatusReason> = new Set([
  'unauthorized',
  'insufficient_scope',
  'authorization_ended',
  'authorization_unavailable',
]);

const loginAdvice: Partial<Record<DiagnosisStepName, string>> = {
  discovery:
    'Ask the operator of the MCP server to fix its metadata. The owner of the connection can PUT it with ' +
    '"oauth": {"issuer": …}, or with headers that the server accepts.',
  client:
    'Wait, and ask the operator of the authorization server. The owner of the connection can PUT it with ' +
    '"oauth": {"clientId": …, "clientSecret": …} of a client that is registered there.',
};

const PUBLISHER = 'ask the publisher of the server: the address is theirs.';
const ofAddress: ReadonlySet<DiagnosisStepName> = new Set(['dns', 'guard', 'connect', 'tls', 'http', 'era']);

function verdictOf(
  target: ConnectionTarget,
  failed: StepFailedError | null,
  { steps }: DiagnosisLog,
  urls: ConnectionUrls,
): string {
  if (!failed) {
    const evidence = steps.find(({ step }) => step === 'list')?.evidence ?? '';
    return `Everything works: ${lowerFirst(evidence)}`;
  }
  const { step, reason } = failed;
  if (target.kind === 'server' && ofAddress.has(step)) return `It stops at ${step}: ${PUBLISHER}`;
  const status = statusAfter(reason);
  const next = status ? urls.nextStep(status.reason) : null;
  const isKnownBetter = advice[step] === undefined || (status !== null && !vague.has(status.reason));
  const act = isKnownBetter && next !== null ? lowerFirst(next) : (advice[step] ?? 'read the evidence of the step.');
  return `It stops at ${step}: ${act}`;
}

const vague: ReadonlySet<string> = new Set(['unreachable', 'timeout']);

function lowerFirst(sentence: string): string {
  return /^[A-Z]{2}/.test(sentence) ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
