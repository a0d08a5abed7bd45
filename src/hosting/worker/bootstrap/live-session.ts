import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { MessageHandler, SdkServer, ServerContext, ServerFactory } from './user-module.js';

/**
 * A session that several processes can use: it receives `notifications/initialized` once, and its requests outside of any call go
 * to the last caller that accepts requests.
 */
export class LiveSession {
  private readonly transport: WebStandardStreamableHTTPServerTransport;
  onMessage: MessageHandler | undefined;
  /** Result of `initialize`; null before, or when `initialize` was rejected. */
  initializeResult: unknown = null;
  private server: SdkServer | undefined;
  private readonly running = new Set<RequestId>();
  private arriving = 0;
  private isInitialized = false;
  private isRetired = false;

  private constructor(
    id: string,
    readonly accessToken: string | undefined,
  ) {
    this.transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
  }

  /** @throws errors of the code */
  static async begin(
    factory: ServerFactory,
    id: string,
    { accessToken, ...context }: Omit<ServerContext, 'onMessage'>,
  ): Promise<LiveSession> {
    const live = new LiveSession(id, accessToken);
    const server = await factory({
      ...context,
      onMessage: (handler) => (live.onMessage = handler),
      ...(accessToken === undefined ? {} : { accessToken }),
    });
    live.server = server;
    await server.connect(live.transport);
    live.wrapTransport();
    return live;
  }

  get hasBegun(): boolean {
    return this.transport.sessionId !== undefined;
  }

  async handle(request: Request): Promise<Response> {
    this.arriving += 1;
    try {
      return await this.transport.handleRequest(request);
    } finally {
      this.arriving -= 1;
      await this.closeIfDone();
    }
  }

  async close(): Promise<void> {
    await this.server?.close?.();
  }

  /** Waits for the running requests of the replaced session. */
  async retire(): Promise<void> {
    this.isRetired = true;
    await this.closeIfDone();
  }

  private async closeIfDone(): Promise<void> {
    if (this.isRetired && this.arriving === 0 && this.running.size === 0) await this.close();
  }

  private wrapTransport(): void {
    const { transport } = this;
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (this.isAccepted(message)) receive?.(message, extra);
    };
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      let sendOptions = options;
      if (!('method' in message)) {
        if (message.id !== undefined) this.running.delete(message.id);
        if ('result' in message) this.initializeResult ??= message.result;
      } else if ('id' in message && options?.relatedRequestId === undefined) {
        const last = [...this.running].at(-1);
        if (last !== undefined) sendOptions = { ...options, relatedRequestId: last };
      }
      await send(message, sendOptions);
      await this.closeIfDone();
    };
  }

  /** Returns false for a repeated `notifications/initialized`: every process that opens the session sends it. */
  private isAccepted(message: JSONRPCMessage): boolean {
    if (!('method' in message)) return true;
    if ('id' in message) {
      this.running.add(message.id);
      return true;
    }
    if (message.method === 'notifications/cancelled') this.running.delete(message.params?.requestId as RequestId);
    if (message.method !== 'notifications/initialized') return true;
    const isFirst = !this.isInitialized;
    this.isInitialized = true;
    return isFirst;
  }
}
