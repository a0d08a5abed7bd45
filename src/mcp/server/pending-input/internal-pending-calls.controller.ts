import type { IncomingMessage, ServerResponse } from 'node:http';
import { Req, Res } from '@nestjs/common';
import { InternalAnswer, InternalServer } from '../../../platform/internal-http/internal-server.js';
import { InternalController, InternalRoute } from '../../../platform/internal-http/internal-route.js';
import { DisconnectCancellation } from '../response-sink.js';
import { PendingInputCalls } from './pending-input-calls.js';
import { PENDING_CALLS_PATH, type PendingCallHead, type PendingCallMessage } from './remote-pending-calls.js';

/** Receives client answers that arrived at other processes, for calls held in this one. */
@InternalController(PENDING_CALLS_PATH)
export class InternalPendingCallsController {
  constructor(
    private readonly pendingInputCalls: PendingInputCalls,
    private readonly internalServer: InternalServer,
  ) {}

  /**
   * Continues one call with its next round. @throws NotFoundError for a request not signed by a process of this
   * service
   */
  @InternalRoute()
  async round(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const accepted = await this.internalServer.accept<PendingCallHead>(request);
    const { token, ...incoming } = accepted.head;
    const answers = await accepted.text();
    const answer = new InternalAnswer(response);
    const send = (message: PendingCallMessage) => answer.message(message);
    const target = { sink: { event: (text: string) => send({ type: 'event', text }) }, token };
    const disconnected = new DisconnectCancellation(response);
    const sent = this.pendingInputCalls.nextRound({ ...incoming, answers }, target, disconnected).then((round) => {
      if ('requests' in round) send({ type: 'requests', requests: round.requests });
      else send({ type: 'reply', text: round.reply.text, era: round.reply.era });
    });
    await answer.endAfter(sent.finally(() => disconnected.stopWatching()));
  }
}
