import { Injectable } from '@nestjs/common';
import { deadlineIn } from '../../../mcp/protocol/deadline.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { Egress } from '../../../platform/egress/egress.js';
import { FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ServerGoneError } from '../../run/run.errors.js';
import { ConnectionChannels } from '../core/connection-channels.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ConnectionReader } from '../core/connection-reader.js';
import { statusAfter } from '../core/connection-status.js';
import type { ConnectionTarget } from '../core/connection.types.js';
import { StatusRecorder } from '../core/status-recorder.js';
import { DiagnosisLog, StepFailed } from './diagnosis-log.js';
import type { DiagnosisDto, DiagnosisStepName } from './diagnosis.dto.js';
import { probeMcp } from './mcp-probe.js';
import { NetworkProbe, type NetworkPlace } from './network-probe.js';
import { verdictOf } from './verdict.js';

/** For everything a diagnosis looks at. */
const DIAGNOSIS_MS_MAX = 20_000;

/** Diagnoses at once in this process, of which one account may have half, and how long one waits for its turn. */
const AT_ONCE_MAX = 8;
const TURN_MS_MAX = 5_000;

const network = ['target', 'dns', 'guard', 'connect', 'tls', 'http', 'era', 'authorization', 'list'] as const;

/** What lies between here and a server elsewhere. */
const onTheWay = ['dns', 'guard', 'connect', 'tls'] as const;

/** What is looked at, by where a connection leads. */
const planned: Record<ConnectionTarget['kind'], readonly DiagnosisStepName[]> = {
  url: network,
  server: network,
  mock: ['target', 'era', 'list'],
  source: ['target', 'era', 'list'],
  uplink: ['target', 'tunnel', 'era', 'list'],
};

/** Finds out what stands between the service and the MCP server of a connection, and writes it into its status. */
@Injectable()
export class DiagnosisService {
  private readonly slots = new FairSemaphore(AT_ONCE_MAX, TURN_MS_MAX);
  private readonly running = new Map<string, Promise<DiagnosisDto>>();

  constructor(
    private readonly links: ConnectionHandles,
    private readonly channels: ConnectionChannels,
    private readonly statuses: StatusRecorder,
    private readonly reader: ConnectionReader,
    private readonly runs: ServerChannelsService,
    private readonly egress: Egress,
  ) {}

  /**
   * Looks at one thing after the other, in 20 s at most. Who asks while one runs is given the same.
   *
   * @throws ResourceNotFoundError, NoSlotError
   */
  async diagnose(namespace: OwnedNamespace, connectionId: string, accountId: string): Promise<DiagnosisDto> {
    const target = await this.links.target(namespace, connectionId);
    const running = this.running.get(target.id);
    if (running) return running;
    const started = this.slots
      .run(accountId, () => this.run(namespace, target))
      .finally(() => this.running.delete(target.id));
    this.running.set(target.id, started);
    return started;
  }

  private async run(namespace: OwnedNamespace, target: ConnectionTarget): Promise<DiagnosisDto> {
    const log = new DiagnosisLog(target);
    const observer = this.statuses.observer(target);
    let failed: StepFailed | null = null;
    try {
      await this.look(namespace, target, log);
      observer.succeeded();
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      failed = error;
      const status = statusAfter(error.reason);
      if (status) observer.failed(status);
    }
    log.skipRest(planned[target.kind]);
    const { status } = await this.reader.get(namespace, target.connectionId);
    const { connectionId, kind } = target;
    return { connectionId, target: kind, steps: log.steps, verdict: verdictOf(target, failed, log), status };
  }

  private async look(namespace: OwnedNamespace, target: ConnectionTarget, log: DiagnosisLog): Promise<void> {
    const left = deadlineIn(DIAGNOSIS_MS_MAX);
    switch (target.kind) {
      case 'url':
      case 'server': {
        const place = await this.placeOf(target, log);
        if (place) await new NetworkProbe(this.egress, place, log, left).run();
        else for (const step of onTheWay) log.skip(step, 'It is hosted here: no network lies between.');
        const channel = this.channels.to(target);
        return probeMcp(channel, log, left, { overHttp: true }).finally(() => channel.close());
      }
      case 'mock':
        log.ok('target', `It simulates ${target.serverName} here: no server is contacted.`);
        return this.lookAtOurs(namespace, target, log, left);
      case 'source':
        log.ok('target', 'It leads to a module that is stored here.');
        return this.lookAtOurs(namespace, target, log, left);
      case 'uplink':
        return this.lookAtUplink(namespace, target, log, left);
    }
  }

  /** Null for what runs here. */
  private async placeOf(
    target: ConnectionTarget & { kind: 'url' | 'server' },
    log: DiagnosisLog,
  ): Promise<NetworkPlace | null> {
    if (target.kind === 'url') {
      const url = new URL(target.url);
      log.ok('target', `It leads to the MCP server at ${url.host}.`);
      return { url, alias: null };
    }
    const { serverId, serverName } = target;
    if (serverId === null) log.fail('target', new ServerGoneError(serverName));
    const url = await this.runs.upstreamOf(serverId, serverName).catch((error: Error) => log.fail('target', error));
    const where = url ? 'which has a release that runs' : 'which is hosted here';
    log.ok('target', `It leads to the registry server ${serverName}, ${where}.`);
    return url && { url, alias: serverName };
  }

  private async lookAtUplink(
    namespace: OwnedNamespace,
    target: ConnectionTarget,
    log: DiagnosisLog,
    left: () => number,
  ): Promise<void> {
    log.ok('target', 'It leads to a local server over a tunnel that its command line tool opens.');
    const channel = await this.links.find(namespace, target.connectionId);
    const isPaired = async () => {
      const { status } = await this.reader.get(namespace, target.connectionId);
      await channel.open(left()).catch((error: Error) => {
        if (statusAfter(error)?.state === 'disconnected') throw error;
      });
      return status.state === 'connected'
        ? `A local server is paired; connected since ${status.since}.`
        : 'A local server is paired.';
    };
    await log.look('tunnel', isPaired, (error) => error as Error);
    await probeMcp(channel, log, left, { overHttp: false });
  }

  /** What needs no network uses the channel that calls use: a second one might be a second server. */
  private async lookAtOurs(
    namespace: OwnedNamespace,
    target: ConnectionTarget,
    log: DiagnosisLog,
    left: () => number,
  ): Promise<void> {
    const channel: Channel = await this.links.find(namespace, target.connectionId);
    await probeMcp(channel, log, left, { overHttp: false });
  }
}
