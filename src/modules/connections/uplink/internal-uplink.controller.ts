import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Channel } from '../../../mcp/channel.js';
import { Cancellation } from '../../../mcp/cancellation.js';
import { whileConnected } from '../../../mcp/front/client-gone.js';
import { RouteNotFoundError } from '../../../platform/errors/http-errors.js';
import { INTERNAL_HEADER, InternalSignatures } from '../../../platform/http/internal-signatures.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { readBody } from '../../../platform/http/request-body.js';
import { toWire, type InternalAsk, type InternalLine } from './internal-frames.js';
import { UplinkTunnels } from './uplink-tunnels.js';

/** The params of a call (16 MB) and a line about it. */
const BODY_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024;

/** A process that does not read what it asked for gets no more than this. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;

/** Calls from other processes through tunnels that this one holds. Whoever does not hold the secret finds nothing here. */
@Controller('internal/uplink/:connection/:tunnel')
@ApiExcludeController()
export class InternalUplinkController {
  constructor(
    private readonly tunnels: UplinkTunnels,
    private readonly signatures: InternalSignatures,
  ) {}

  /** One request, or listening. @throws RouteNotFoundError for anybody else, and when the tunnel is not here */
  @Post()
  @HttpCode(200)
  @Public()
  async serve(
    @Param('connection') connection: string,
    @Param('tunnel') tunnel: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const path = request.url ?? '';
    const isSigned = this.signatures.verify(path, request.headers[INTERNAL_HEADER]);
    if (!isSigned) throw new RouteNotFoundError('POST', path);
    const body = await readBody(request, BODY_BYTES_MAX);
    const channel = isSigned(body) ? this.tunnels.channelNamed(connection, tunnel) : null;
    if (!channel) throw new RouteNotFoundError('POST', path);
    const end = body.indexOf('\n');
    const ask = JSON.parse(body.slice(0, end)) as InternalAsk;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    const tell = (line: InternalLine) => {
      response.write(`${JSON.stringify(line)}\n`);
      if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
    };
    try {
      await whileConnected(response, (gone) => serve(channel, ask, body.slice(end + 1), gone, tell));
    } catch (error) {
      tell({ line: 'failure', failure: toWire(error) });
    }
    response.end();
  }
}

async function serve(
  channel: Channel,
  ask: InternalAsk,
  params: string,
  cancellation: Cancellation,
  tell: (line: InternalLine) => void,
): Promise<void> {
  const onNotification = (text: string, method: string) => tell({ line: 'notification', method, text });
  switch (ask.ask) {
    case 'open':
      return tell({ line: 'hello', hello: await channel.open(ask.timeoutMs) });
    case 'request': {
      const { text } = await channel.request({
        method: ask.method,
        ...(ask.hasParams ? { params } : {}),
        timeoutMs: ask.timeoutMs,
        cancellation,
        ...(ask.wantsNotifications ? { onNotification } : {}),
      });
      return tell({ line: 'reply', text });
    }
    case 'listen': {
      await new Promise<void>((resolve, reject) => {
        channel.listen(ask.filter, { onNotification, onEnd: () => resolve() }, ask.timeoutMs).then((listening) => {
          tell({ line: 'listening', honoured: listening.honoured });
          cancellation.notify(() => void listening.close().then(resolve));
        }, reject);
      });
      return tell({ line: 'end' });
    }
  }
}
