/**
 * Finds out what a connection to a server would find. Only the count is stored.
 *
 * For a registry server, reads the record and starts nothing. At a URL, lists the first page of tools and closes the sessions, without
 * registering a client; if the address is not an MCP endpoint, a second session tries it with `/mcp`. All of it takes at most 8 s.
 *
 * Limits of an account, over all processes: 4 concurrent, 30 per minute, 300 per day (TooManyError). All other failures are results.
 * Blocked addresses and unknown hosts share one message, so that nobody learns which names and addresses exist behind Slipway; messages
 * contain nothing that the server sent.
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { HttpChannels } from '../../../mcp/client/http/http-channel.js';
import { discoverTarget } from '../../../mcp/oauth/discovery.js';
import { createOAuthFetch } from '../../../mcp/oauth/oauth-fetch.js';
import { NoAuthorizationServerError, OAuthSetupError } from '../../../mcp/oauth/oauth-errors.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { deadlineIn } from '../../../mcp/protocol/deadline.js';
import { isDeclared, listPages, mcpLists } from '../../../mcp/protocol/list-pages.js';
import { sharedProfile } from '../../../mcp/protocol/session.js';
import { UpstreamAuthRequiredError, UpstreamError, withoutWords } from '../../../mcp/protocol/mcp-errors.js';
import { Egress } from '../../../platform/egress/egress.js';
import { DomainError, InvalidInputError, TooManyError } from '../../../platform/errors/domain-error.js';
import { checkedBody } from '../../../platform/http/input.pipe.js';
import { isObject } from '../../../platform/text/json.js';
import type { Caller } from '../../auth/access.types.js';
import { formatQualifiedName, parseQualifiedName, type QualifiedName } from '../../servers/server.types.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ServersService } from '../../servers/servers.service.js';
import { statusAfter, statusReasons, type StatusReason } from '../core/connection-status.js';
import { toStoredServerInfo } from '../core/server-info.js';
import { PAGE_CAPABILITIES } from '../tools/connection-tools.service.js';
import { registryAddressOf } from '../core/target-resolver.js';
import { ProbeBodyDto, type ProbeDto, type ProbeLoginDto, type ProbeToolDto } from './probe.dto.js';
import { ProbesRepository, type ProbeCounts } from './probes.repository.js';

const PROBE_MS_MAX = 8_000;

/** Age after which an unfinished probe belongs to a killed process. */
const RUNNING_MS_MAX = 2 * PROBE_MS_MAX;

const limits: ProbeCounts = { running: 4, minute: 30, day: 300 };

const TOOLS_MAX = 1_000;
const TEXT_CHARS_MAX = 2_000;

const ASK = 'Try again later, or ask whoever runs the server.';

const nextSteps: Partial<Record<StatusReason, string>> = {
  unauthorized: 'Add it, then log in or enter the key on its setup page.',
  not_mcp: 'Check the path of the address.',
  unreadable: 'Check the path of the address. If it is right, ask whoever runs the server.',
  forbidden: 'Send headers that give access, such as a key.',
  unreachable: 'Check the address, and that the server runs.',
  blocked: 'Check the address. The operator of this service decides in EGRESS_ALLOW which addresses it may call.',
};

const nothing = {
  nextStep: null,
  name: null,
  title: null,
  version: null,
  iconUrl: null,
  protocolVersion: null,
  login: null,
  tools: null,
  hasMoreTools: false,
  configSchema: null,
  didYouMean: null,
} satisfies Partial<ProbeDto>;

const outcome = (target: ProbeDto['target'], reason: StatusReason, message: string): ProbeDto => ({
  ...nothing,
  target,
  state: statusReasons[reason].state,
  reason,
  message,
  nextStep: nextSteps[reason] ?? (reason === 'ok' ? null : ASK),
});

const blockedOutcome = (): ProbeDto =>
  outcome('url', 'blocked', 'Slipway does not call this address, or its name has no address.');

@Injectable()
export class ProbeService {
  constructor(
    private readonly probesRepository: ProbesRepository,
    private readonly serversService: ServersService,
    private readonly httpChannels: HttpChannels,
    private readonly egress: Egress,
    private readonly env: Env,
  ) {}

  /** @throws InvalidInputError */
  checkBody(body: object): Promise<ProbeBodyDto> {
    return checkedBody(ProbeBodyDto, body);
  }

  /** @throws InvalidInputError, TooManyError; ServerNotFoundError for a server that is hidden from the caller */
  async probe(caller: Caller, { mcpUrl, server, headers = {} }: ProbeBodyDto): Promise<ProbeDto> {
    if ((mcpUrl === undefined) === (server === undefined)) {
      throw new InvalidInputError('send exactly one of mcpUrl and server');
    }
    if (mcpUrl === undefined && Object.keys(headers).length > 0)
      throw new InvalidInputError('server accepts no headers');
    const begun = await this.probesRepository.begin(caller.accountId, limits, RUNNING_MS_MAX);
    if (typeof begun !== 'string') throw tooMany(begun);
    try {
      const name =
        server === undefined ? await this.nameAt(mcpUrl ?? '', caller) : parseQualifiedName(server.replace(/^@/, ''));
      return name ? await this.ofServer(name, caller) : await this.ofUrl(new URL(mcpUrl ?? ''), headers, caller);
    } finally {
      await this.probesRepository.markEnded(begun);
    }
  }

  /** Returns the registry server that an address names; null for other addresses. @throws ServerNotFoundError */
  private async nameAt(mcpUrl: string, caller: Caller): Promise<QualifiedName | null> {
    const address = registryAddressOf(mcpUrl, this.env);
    if (!address) return null;
    if ('name' in address) return parseQualifiedName(address.name);
    const server = await this.serversService.findBySlug(address.slug, caller);
    if (!server) throw new ServerNotFoundError();
    return server;
  }

  private async ofServer(name: QualifiedName, caller: Caller): Promise<ProbeDto> {
    const server = await this.serversService.detail(name, caller);
    const serverRef = await this.serversService.find(name, caller);
    const mayCall = await this.serversService.requireCall(caller, serverRef).then(
      () => true,
      (error: unknown) => {
        if (error instanceof DomainError) return false;
        throw error;
      },
    );
    const { configSchema = {} } = server.connections[0] ?? {};
    const isWanting = ((configSchema.required as unknown[] | undefined) ?? []).length > 0;
    const answer = server.suspended
      ? outcome('server', 'forbidden', 'The operator suspended this server.')
      : !mayCall
        ? {
            ...outcome('server', 'forbidden', 'Only accounts to which its owner grants it call this server.'),
            nextStep: 'Ask its owner for access.',
          }
        : !server.remote
          ? outcome('server', 'not_runnable', 'This server has no release that runs here.')
          : isWanting
            ? {
                ...outcome('server', 'missing_values', 'This server needs values from you.'),
                nextStep: 'Enter the values.',
              }
            : { ...outcome('server', 'never_called', 'This server can be added.'), nextStep: null };
    return {
      ...answer,
      name: formatQualifiedName(serverRef),
      title: server.displayName,
      iconUrl: server.iconUrl,
      tools: server.tools?.map((tool) => toTool({ ...tool })) ?? null,
      configSchema,
    };
  }

  private async ofUrl(url: URL, headers: Record<string, string>, { accountId }: Caller): Promise<ProbeDto> {
    // This service would call itself.
    if (url.origin === new URL(this.env.baseUrl).origin) return blockedOutcome();
    const msLeft = deadlineIn(PROBE_MS_MAX);
    const channelTo = (address: URL) =>
      this.httpChannels.forgetfulChannelTo({
        url: address,
        account: accountId,
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
        connectTimeoutMs: Math.min(PROBE_MS_MAX, this.env.upstreamConnectTimeoutMs),
      });
    try {
      return await askServer(channelTo(url), msLeft);
    } catch (error) {
      const status = statusAfter(error);
      if (!status) throw error;
      const dialed = redirectOf(error, url) ?? (status.reason === 'unreachable' ? url : null);
      if (status.reason === 'blocked' || (dialed && (await this.isBlocked(dialed)))) return blockedOutcome();
      if (error instanceof UpstreamAuthRequiredError) return this.login(url, headers, error, msLeft);
      const message =
        error instanceof UpstreamError && error.failure === 'broken list'
          ? 'The server opens a session, but does not list its tools.'
          : withoutWords(status.message ?? '');
      const isLate = status.reason === 'timeout';
      const answer = outcome(
        'url',
        status.reason,
        isLate ? `${url.host} did not answer within ${PROBE_MS_MAX / 1000} s.` : message,
      );
      if (!(status.reason === 'not_mcp' || status.reason === 'unreadable') || url.pathname.endsWith('/mcp'))
        return answer;
      const nearby = new URL(url);
      nearby.pathname = `${url.pathname.replace(/\/$/, '')}/mcp`;
      const isEndpoint = await canOpen(channelTo(nearby), msLeft);
      return isEndpoint
        ? { ...answer, nextStep: `Use ${nearby.origin}${nearby.pathname} instead.`, didYouMean: nearby.href }
        : answer;
    }
  }

  private async isBlocked(url: URL): Promise<boolean> {
    try {
      return (await this.egress.locate(this.egress.check(url))).refusal !== null;
    } catch {
      return true;
    }
  }

  private async login(
    { href }: URL,
    headers: Record<string, string>,
    { challenges }: UpstreamAuthRequiredError,
    msLeft: () => number,
  ): Promise<ProbeDto> {
    const answer = outcome('url', 'unauthorized', 'The server wants a login or a key.');
    if (Object.keys(headers).length > 0) answer.message = 'The server does not accept these headers.';
    let login: ProbeLoginDto;
    try {
      const { server, resourceName } = await discoverTarget(
        createOAuthFetch(this.egress, AbortSignal.timeout(Math.ceil(msLeft()))),
        {
          upstreamUrl: href,
          challenge: challenges,
          knownAmong: () => Promise.resolve(new Set()),
          pkceUnannounced: this.env.oauthPkceUnannounced,
        },
      );
      answer.title = resourceName;
      login = { kind: 'oauth', host: new URL(server.authorizationEndpoint).host };
    } catch (error) {
      if (!(error instanceof OAuthSetupError)) throw error;
      login =
        error instanceof NoAuthorizationServerError ? { kind: 'key', header: 'Authorization' } : { kind: 'oauth' };
      if (login.kind === 'oauth')
        answer.message = 'The server wants a login at an authorization server that cannot be used.';
    }
    return { ...answer, login };
  }
}

function redirectOf(error: unknown, from: URL): URL | null {
  const location = error instanceof UpstreamError && (error.status ?? 0) < 400 ? error.detail : null;
  return typeof location === 'string' ? parseUrl(location, from) : null;
}

/** @throws UpstreamFailure */
async function askServer(channel: Channel, msLeft: () => number): Promise<ProbeDto> {
  try {
    const { capabilities, serverInfo, protocolVersion, era } = await channel.open(msLeft());
    const { name, title, version, icons } = toStoredServerInfo(serverInfo);
    const result = { ...outcome('url', 'ok', 'The server answers.'), login: { kind: 'none' as const }, tools: [] };
    const iconUrl = icons?.find(({ src }) => /^(?:https?:|data:image\/)/i.test(src))?.src ?? null;
    const identity = { ...result, name, title: title ?? null, version, iconUrl, protocolVersion };
    if (!isDeclared(capabilities.tools)) return identity;
    const profile = sharedProfile(era, PAGE_CAPABILITIES);
    const asPage: Pick<Channel, 'request'> = { request: (call) => channel.request({ ...call, profile }) };
    for await (const { items, nextCursor } of listPages(asPage, mcpLists.tools, msLeft())) {
      const tools = items.slice(0, TOOLS_MAX).map((text) => toTool(JSON.parse(text)));
      const hasMoreTools = nextCursor !== undefined || items.length > TOOLS_MAX;
      return { ...identity, tools: tools.filter(({ name: tool }) => tool !== ''), hasMoreTools };
    }
    return identity;
  } finally {
    void channel.close();
  }
}

/** Returns true if an MCP server responds, even if it requires authorization. */
async function canOpen(channel: Channel, msLeft: () => number): Promise<boolean> {
  try {
    await channel.open(msLeft());
    return true;
  } catch (error) {
    return error instanceof UpstreamAuthRequiredError;
  } finally {
    void channel.close();
  }
}

/** Converts a tool, without members of wrong types. The name is empty if the tool has none. */
function toTool(value: unknown): ProbeToolDto {
  const tool = isObject(value) ? value : {};
  const text = (member: string) => {
    const content = tool[member];
    return typeof content === 'string' ? { [member]: content.slice(0, TEXT_CHARS_MAX) } : {};
  };
  const hints = isObject(tool.annotations) ? Object.entries(tool.annotations) : [];
  const annotations = Object.fromEntries(
    hints.filter(([name, hint]) =>
      name === 'title' ? typeof hint === 'string' : /Hint$/.test(name) && typeof hint === 'boolean',
    ),
  );
  return {
    name: '',
    ...text('name'),
    ...text('title'),
    ...text('description'),
    ...(hints.length > 0 && { annotations }),
  };
}

function tooMany({ running, day }: ProbeCounts): TooManyError {
  if (running >= limits.running)
    return new TooManyError(
      `Your account may probe ${limits.running} servers concurrently: try again when one is done`,
      5,
    );
  if (day >= limits.day)
    return new TooManyError(`Your account may probe ${limits.day} servers in a day: try again later`, 3_600);
  return new TooManyError(`Your account may probe ${limits.minute} servers in a minute: try again later`, 60);
}
