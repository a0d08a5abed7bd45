import type { IncomingMessage, ServerResponse } from 'node:http';
import { Req, Res } from '@nestjs/common';
import { serializeError } from '../../../platform/internal-http/error-codec.js';
import { InternalAnswer, InternalServer } from '../../../platform/internal-http/internal-server.js';
import { InternalController, InternalRoute } from '../../../platform/internal-http/internal-route.js';
import { SSE_STREAMS_PATH, type SseStreamHead, type SseStreamMessage } from './remote-sse-streams.js';
import { SseStreams } from './sse-streams.js';

/** Receives messages that HTTP+SSE clients posted to other processes, for streams that this one holds. */
@InternalController(SSE_STREAMS_PATH)
export class InternalSseStreamsController {
  constructor(
    private readonly sseStreams: SseStreams,
    private readonly internalServer: InternalServer,
  ) {}

  /** Serves a posted message. @throws NotFoundError for a request not signed by a process of this service */
  @InternalRoute()
  async serveMessage(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const accepted = await this.internalServer.accept<SseStreamHead>(request);
    const body = await accepted.text();
    const answer = new InternalAnswer(response);
    const send = (message: SseStreamMessage) => answer.message(message);
    const failed = (error: Error) => send({ type: 'failed', error: serializeError(error) });
    const observer = { received: () => undefined, failed };
    await answer.endAfter(
      this.sseStreams.serveMessage(accepted.head.name, body, () => send({ type: 'taken' }), observer),
    );
  }
}
