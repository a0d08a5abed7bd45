import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Param, Req, Res } from '@nestjs/common';
import type { Cancellation } from '../../../mcp/protocol/cancellation.js';
import type { Channel, ClientAnswer, ListenFilter, McpCall } from '../../../mcp/protocol/channel.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';
import { DisconnectCancellation } from '../../../mcp/server/response-sink.js';
import { InternalAnswer, InternalServer } from '../../../platform/internal-http/internal-server.js';
import { InternalController, InternalRoute } from '../../../platform/internal-http/internal-route.js';
import type { UplinkMessage, UplinkRequest } from './remote-uplink-channel.js';
import { UplinkTunnels } from './uplink-tunnels.js';
import { TunnelMovedError } from './uplink.errors.js';

type Send = (message: UplinkMessage) => void;

/** Routes by which other processes use the tunnels of this one. */
@InternalController('internal/uplink/:connection/:tunnel')
export class InternalUplinkController {
  /** Requests of local servers to clients of other processes, by id; each response is an internal request. */
  private readonly clientRequests = new Map<string, (answer: ClientAnswer) => void>();

  constructor(
    private readonly uplinkTunnels: UplinkTunnels,
    private readonly internalServer: InternalServer,
  ) {}

  /** Serves one request. @throws NotFoundError for a request that no process of this service signed */
  @InternalRoute()
  async serve(
    @Param('connection') connection: string,
    @Param('tunnel') tunnel: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const accepted = await this.internalServer.accept<UplinkRequest>(request);
    const body = await accepted.text();
    const answer = new InternalAnswer(response);
    const channel = this.uplinkTunnels.channelNamed(connection, tunnel);
    if (!channel) return answer.fail(new TunnelMovedError());
    const send: Send = (message) => answer.message(message);
    const cancellation = new DisconnectCancellation(response);
    await answer.endAfter(
      this.run(channel, accepted.head, body, cancellation, send).finally(() => cancellation.stopWatching()),
    );
  }

  private async run(
    channel: Channel,
    head: UplinkRequest,
    body: string,
    cancellation: Cancellation,
    send: Send,
  ): Promise<void> {
    switch (head.kind) {
      case 'open':
        return send({ type: 'identity', identity: await channel.open(head.timeoutMs) });
      case 'request':
        return this.request(channel, head, body, cancellation, send);
      case 'listen':
        return listen(channel, JSON.parse(body) as ListenFilter, head.timeoutMs, cancellation, send);
      case 'client-answer':
        this.clientRequests.get(head.id)?.(JSON.parse(body) as ClientAnswer);
    }
  }

  private async request(
    channel: Channel,
    {
      method,
      timeoutMs,
      hasParams,
      wantsNotifications,
      profileKey,
      level,
      canRespond,
    }: Extract<UplinkRequest, { kind: 'request' }>,
    params: string,
    cancellation: Cancellation,
    send: Send,
  ): Promise<void> {
    const open = new Set<string>();
    const onRequest: McpCall['onRequest'] = (requested, requestedParams) => {
      const id = randomUUID();
      open.add(id);
      return new Promise((resolve) => {
        this.clientRequests.set(id, (answer) => {
          this.clientRequests.delete(id);
          open.delete(id);
          resolve(answer);
        });
        send({ type: 'client-request', id, method: requested, params: requestedParams });
      });
    };
    try {
      const { text } = await channel.request({
        method,
        ...(hasParams ? { params } : {}),
        timeoutMs,
        cancellation,
        ...(wantsNotifications ? { onNotification: notifying(send) } : {}),
        ...(profileKey === null ? {} : { profile: { key: profileKey, capabilities: {}, level } }),
        ...(canRespond ? { onRequest } : {}),
      });
      send({ type: 'reply', text });
    } finally {
      const error = { code: rpcCode.internalError, message: 'The client has disconnected' };
      for (const id of [...open]) this.clientRequests.get(id)?.({ error });
    }
  }
}

/** Resolves when the upstream closes the subscription, or the other process disconnects. */
function listen(
  channel: Channel,
  filter: ListenFilter,
  timeoutMs: number,
  cancellation: Cancellation,
  send: Send,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const listener = { onNotification: notifying(send), onEnd: () => resolve() };
    channel.listen(filter, listener, { timeoutMs }).then((listening) => {
      send({ type: 'listening', honoured: listening.honoured });
      cancellation.notify(() => void listening.close().then(resolve));
    }, reject);
  });
}

function notifying(send: Send): (text: string, method: string) => void {
  return (text, method) => send({ type: 'notification', method, text });
}
