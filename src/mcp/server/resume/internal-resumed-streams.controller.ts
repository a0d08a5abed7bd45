import type { IncomingMessage, ServerResponse } from 'node:http';
import { Req, Res } from '@nestjs/common';
import { InternalAnswer, InternalServer } from '../../../platform/internal-http/internal-server.js';
import { InternalController, InternalRoute } from '../../../platform/internal-http/internal-route.js';
import {
  RESUMED_STREAMS_PATH,
  ResumableStreams,
  type ResumedStreamHead,
  type ResumedStreamMessage,
} from './resumable-streams.js';

/** Sends the streams of this process to others, whose clients resume them. */
@InternalController(RESUMED_STREAMS_PATH)
export class InternalResumedStreamsController {
  constructor(
    private readonly resumableStreams: ResumableStreams,
    private readonly internalServer: InternalServer,
  ) {}

  /** Sends a stream until its end. @throws NotFoundError for a request not signed by a process of this service */
  @InternalRoute()
  async read(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const { head } = await this.internalServer.accept<ResumedStreamHead>(request);
    let stopReading: () => void = () => undefined;
    const answer = new InternalAnswer(response, () => stopReading());
    const send = (message: ResumedStreamMessage) => answer.message(message);
    await answer.endAfter(
      new Promise((resolve) => {
        const reader = {
          open: () => send({ type: 'opened' }),
          write: (frame: string) => send({ type: 'event', frame }),
          end: (last?: string) => {
            if (last !== undefined) send({ type: 'event', frame: last });
            resolve();
          },
        };
        this.resumableStreams.read(head, reader, (onLeft) => {
          stopReading = () => {
            onLeft();
            resolve();
          };
        });
      }),
    );
  }
}
