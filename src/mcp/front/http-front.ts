import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../../platform/http/request-body.js';
import type { Channel } from '../channel.js';
import { whileConnected } from './client-gone.js';
import { OriginRefusedError, type FrontRefusal } from './front.errors.js';
import { McpFront, type FrontLimits, type FrontWatch } from './mcp-front.js';
import { isTrustedOrigin, type OwnSite } from './origin.js';
import { ResponseSink } from './response-sink.js';

/** The largest JSON-RPC message taken from a client. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Where a request leads. */
export interface FrontTarget {
  /** The upstream, or why there is none. */
  channel: Channel | FrontRefusal;
  /** Who is asking whom, for cancelling one's own calls: the key and the target. */
  caller: string;
}

/** An MCP endpoint over streamable HTTP: what every POST to one goes through, whatever the upstream is. */
export class HttpFront {
  private readonly front: McpFront;

  constructor(
    limits: FrontLimits,
    private readonly site: OwnSite,
  ) {
    this.front = new McpFront(limits);
  }

  /**
   * Answers one POST. The body is read before `find` is asked where it leads.
   *
   * @throws OriginRefusedError, BodyTooLargeError, InvalidInputError, what `find` throws
   */
  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<FrontTarget>,
    watch?: FrontWatch,
  ): Promise<void> {
    const { headers } = request;
    if (!isTrustedOrigin(headers.origin, this.site)) throw new OriginRefusedError();
    const text = await readBody(request, MESSAGE_BYTES_MAX);
    const { channel, caller } = await find();
    const session = headers['mcp-session-id'];
    await whileConnected(response, (cancellation) =>
      this.front.serve(
        channel,
        {
          text,
          acceptsStream: headers.accept?.includes('text/event-stream') ?? false,
          protocolVersion: headers['mcp-protocol-version'] as string | undefined,
          caller: `${caller} ${typeof session === 'string' ? session : ''}`,
          cancellation,
          watch,
        },
        new ResponseSink(response),
      ),
    );
  }
}
