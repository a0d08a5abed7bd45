import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { readInternal } from '../../../platform/internal-http/internal-request.js';
import { InternalSignatures } from '../../../platform/internal-http/internal-signatures.js';
import { beginLines } from '../../../platform/internal-http/line-answer.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { toWire } from '../../protocol/wired-failure.js';
import { whileConnected } from '../client-gone.js';
import { PendingInputCalls } from './pending-input-calls.js';
import { PENDING_CALLS_PATH, type PendingCallRequest, type PendingCallLine } from './remote-pending-calls.js';
import { StateRefusedError } from './request-state.js';

/** Answers that arrived at other processes, for calls that wait here. Whoever does not hold the secret finds nothing here. */
@Controller(PENDING_CALLS_PATH)
@ApiExcludeController()
export class InternalPendingCallsController {
  constructor(
    private readonly parked: PendingInputCalls,
    private readonly signatures: InternalSignatures,
  ) {}

  /** The next turn of one call. @throws RouteNotFoundError for anybody else */
  @Post()
  @HttpCode(200)
  @Public()
  async turn(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const { head, rest: answers } = await readInternal<PendingCallRequest>(request, this.signatures);
    const { token, ...asked } = head;
    const tell = beginLines<PendingCallLine>(response);
    const ears = { sink: { event: (text: string) => tell({ line: 'event', text }) }, token };
    try {
      const turn = await whileConnected(response, (gone) => this.parked.turn({ ...asked, answers }, ears, gone));
      if ('asks' in turn) tell({ line: 'asks', asks: turn.asks });
      else tell({ line: 'reply', text: turn.reply.text, era: turn.reply.era });
    } catch (error) {
      if (error instanceof StateRefusedError) tell({ line: 'refused', message: error.message, isLost: error.isLost });
      else tell({ line: 'failure', failure: toWire(error) });
    }
    response.end();
  }
}
