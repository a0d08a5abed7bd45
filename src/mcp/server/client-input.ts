import { randomUUID } from 'node:crypto';
import type { CallerProfile, ClientAnswer } from '../protocol/channel.js';
import { rpcCode } from '../protocol/protocol.js';
import type { McpRequest } from './mcp-request.js';
import { askedFor, type InputRequest, type InputRequired } from './bridge/input.js';
import { withElicitationId } from './bridge/url-elicitation.js';
import { canAnswer, capabilitiesOf, isPage } from './client-capabilities.js';
import type { LiveSessions } from './sessions/live-sessions.js';
import type { PendingClientRequests } from './pending-client-requests.js';

/** How often a modern upstream may ask for input during one call, and for how much at once. */
const ROUNDS_MAX = 8;
const INPUTS_MAX = 16;

/** How long a client may take in all for what it is asked during one call. */
export const INPUT_MS_MAX = 10 * 60_000;

/** Gets legacy clients to answer what upstreams ask during their calls. */
export class ClientInput {
  constructor(
    private readonly sessions: LiveSessions,
    private readonly questions: PendingClientRequests,
  ) {}

  /** How the client is asked back, if it can be: it has a session, declared something, and takes a stream. */
  asking(
    { channel, request, sink }: McpRequest,
    left: () => number,
  ): {
    profile: CallerProfile;
    onRequest: (method: string, params: string | undefined) => Promise<ClientAnswer>;
  } | null {
    const { session, principal, acceptsStream, cancellation } = request;
    const capabilities = session && acceptsStream ? capabilitiesOf(session.askable) : null;
    if (!session || !capabilities) return null;
    this.sessions.uses(session, principal, channel);
    const onRequest = (method: string, params: string | undefined): Promise<ClientAnswer> => {
      if (canAnswer(session.askable, { method, params })) {
        return this.questions.ask(session, { method, params }, sink, cancellation, left());
      }
      const message = `This client does not answer ${method}`;
      return Promise.resolve({ error: { code: rpcCode.methodNotFound, message } });
    };
    return { profile: { key: session.key, capabilities }, onRequest };
  }

  /** Why what the upstream asks for cannot be had of this client, in words; null when it can. */
  unanswerable({ request }: McpRequest, { requests }: InputRequired, round: number): string | null {
    const { session, acceptsStream } = request;
    if (round >= ROUNDS_MAX) return `The MCP server asked for input more than ${ROUNDS_MAX} times`;
    if (requests.length > INPUTS_MAX) return `The MCP server asked for more than ${INPUTS_MAX} things at once`;
    const can = (one: InputRequest) => session !== null && acceptsStream && canAnswer(session.askable, one);
    const open = requests.filter((one) => !can(one)).map(askedFor);
    return open.length === 0 ? null : `The MCP server asks for what this client cannot answer: ${open.join('; ')}`;
  }

  /** Asks the client everything at once; its answers, by the upstream's keys. */
  async collect(
    { request, sink }: McpRequest,
    { requests }: InputRequired,
    left: () => number,
  ): Promise<Map<string, ClientAnswer>> {
    const { session, cancellation } = request;
    if (!session) return new Map();
    const answers = await Promise.all(
      requests.map(async ({ key, method, params }) => {
        const given = isPage(params) ? withElicitationId(params ?? '{}', randomUUID()) : params;
        const answer = await this.questions.ask(session, { method, params: given }, sink, cancellation, left());
        return [key, answer] as const;
      }),
    );
    return new Map(answers);
  }
}
