import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Channel, ClientAnswer, McpCall } from '../../../mcp/protocol/channel.js';
import { Cancellation } from '../../../mcp/protocol/cancellation.js';
import { whileConnected } from '../../../mcp/server/client-gone.js';
import { RouteNotFoundError } from '../../../platform/errors/http-errors.js';
import { readInternal } from '../../../platform/internal-http/internal-request.js';
import { InternalSignatures } from '../../../platform/internal-http/internal-signatures.js';
import { beginLines } from '../../../platform/internal-http/line-answer.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { toWire } from '../../../mcp/protocol/wired-failure.js';
import type { InternalAsk, InternalLine } from './internal-frames.js';
import { RemoteClientRequests } from './remote-client-requests.js';
import { UplinkTunnels } from './uplink-tunnels.js';

/** Calls from other processes through tunnels that this one holds. Whoever does not hold the secret finds nothing here. */
@Controller('internal/uplink/:connection/:tunnel')
@ApiExcludeController()
export class InternalUplinkController {
  private readonly questions = new RemoteClientRequests();

  constructor(
    private readonly tunnels: UplinkTunnels,
    private readonly signatures: InternalSignatures,
  ) {}

  /**
   * One request, listening, or the answer to a question that was asked during a request.
   *
   * @throws RouteNotFoundError for anybody else, and when the tunnel or the question is not here
   */
  @Post()
  @HttpCode(200)
  @Public()
  async serve(
    @Param('connection') connection: string,
    @Param('tunnel') tunnel: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const { head: ask, rest } = await readInternal<InternalAsk>(request, this.signatures);
    const channel = this.tunnels.channelNamed(connection, tunnel);
    if (!channel) throw new RouteNotFoundError('POST', request.url ?? '');
    if (ask.ask === 'answer') {
      const isAwaited = this.questions.answer(ask.question, JSON.parse(rest) as ClientAnswer);
      if (!isAwaited) throw new RouteNotFoundError('POST', request.url ?? '');
      response.writeHead(200).end();
      return;
    }
    const tell = beginLines<InternalLine>(response);
    try {
      await whileConnected(response, (gone) =>
        serve({ channel, questions: this.questions, cancellation: gone, tell }, ask, rest),
      );
    } catch (error) {
      tell({ line: 'failure', failure: toWire(error) });
    }
    response.end();
  }
}

interface Served {
  channel: Channel;
  questions: RemoteClientRequests;
  cancellation: Cancellation;
  tell: (line: InternalLine) => void;
}

type Lasting = Exclude<InternalAsk, { ask: 'answer' }>;

async function serve(served: Served, ask: Lasting, params: string): Promise<void> {
  const { channel, cancellation, tell } = served;
  switch (ask.ask) {
    case 'open':
      return tell({ line: 'hello', hello: await channel.open(ask.timeoutMs) });
    case 'request':
      return serveRequest(served, ask, params);
    case 'listen': {
      await new Promise<void>((resolve, reject) => {
        const listener = { onNotification: notifying(tell), onEnd: () => resolve() };
        channel.listen(ask.filter, listener, ask.timeoutMs).then((listening) => {
          tell({ line: 'listening', honoured: listening.honoured });
          cancellation.notify(() => void listening.close().then(resolve));
        }, reject);
      });
      return tell({ line: 'end' });
    }
  }
}

async function serveRequest(
  { channel, questions, cancellation, tell }: Served,
  { method, timeoutMs, hasParams, wantsNotifications, profileKey }: Extract<InternalAsk, { ask: 'request' }>,
  params: string,
): Promise<void> {
  const own = questions.ofCall();
  const onRequest: McpCall['onRequest'] = (asked, given) =>
    own.ask((question) => tell({ line: 'question', question, method: asked, params: given }));
  try {
    const { text } = await channel.request({
      method,
      ...(hasParams ? { params } : {}),
      timeoutMs,
      cancellation,
      ...(wantsNotifications ? { onNotification: notifying(tell) } : {}),
      ...(profileKey === null ? {} : { profile: { key: profileKey, capabilities: {} }, onRequest }),
    });
    tell({ line: 'reply', text });
  } finally {
    own.close();
  }
}

function notifying(tell: (line: InternalLine) => void): (text: string, method: string) => void {
  return (text, method) => tell({ line: 'notification', method, text });
}
