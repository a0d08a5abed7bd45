import { isUtf8 } from 'node:buffer';
import { Logger } from '@nestjs/common';
import type { WebSocket } from 'ws';
import { UplinkChannel } from '../../../mcp/client/uplink/uplink-channel.js';
import type { FramePort } from '../../../mcp/client/uplink/uplink-calls.js';
import { UNREAD_BYTES_MAX } from '../../../mcp/client/uplink/uplink-calls.js';

/** Close codes of RFC 6455 section 7.4.1 that we send. */
export type CloseCode = 1001 | 1007 | 1008 | 1011 | 1013;

/** A peer that was told the end has this long to agree. */
const CLOSE_MS = 2_000;

/** A peer that answers no ping is believed to read after this long. */
const READY_MS_MAX = 1_000;

/** A WebSocket to one local server, with the channel that speaks over it. */
export class TunnelSocket implements FramePort {
  readonly channel: UplinkChannel;
  readonly ready: Promise<void>;
  /** What the peer did wrong, in a sentence; null while it did nothing. */
  fault: string | null = null;
  private readonly logger = new Logger('uplink');
  private unanswered = 0;
  private onReady: () => void = () => undefined;
  private isEnded = false;

  /** @param onEnd called once, when nothing more will be sent or heard */
  constructor(
    private readonly socket: WebSocket,
    connectTimeoutMs: number,
    private readonly onEnd: () => void,
  ) {
    this.channel = new UplinkChannel(this, connectTimeoutMs);
    socket.on('message', (data, isBinary) => this.onFrame(data as Buffer, isBinary));
    socket.on('ping', (data: Buffer) => this.onPing(data));
    socket.on('pong', () => this.lives());
    // What is wrong with a frame (RFC 6455): ws closes the socket itself, with the right code.
    socket.on('error', ({ message }) => this.blame(message));
    socket.once('close', () => this.end());
    this.ready = this.whenReady();
  }

  get bufferedBytes(): number {
    return this.socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(text);
  }

  refuse(code: 1007 | 1008, reason: string): void {
    this.blame(reason);
    this.shut(code, reason);
  }

  close(): void {
    this.shut(1001, 'closing');
  }

  /** Ends the tunnel: calls under way fail now, whatever the peer does with the news. */
  shut(code: CloseCode, reason: string): void {
    this.end();
    if (this.socket.readyState !== this.socket.OPEN) return;
    this.socket.close(code, reason);
    const timer = setTimeout(() => this.socket.terminate(), CLOSE_MS);
    this.socket.once('close', () => clearTimeout(timer));
  }

  /** Asks for a sign of life. A peer that gave none to the last two requests is dropped. */
  ping(): void {
    if (this.socket.readyState !== this.socket.OPEN) return;
    if (this.unanswered >= 2) {
      this.socket.terminate();
      return;
    }
    this.unanswered += 1;
    this.socket.ping();
  }

  private onFrame(data: Buffer, isBinary: boolean): void {
    this.lives();
    if (isBinary && !isUtf8(data)) return this.refuse(1007, 'a frame must be UTF-8');
    try {
      this.channel.receive(data.toString('utf8'));
    } catch (error) {
      // Thrown on, it would end the process with everybody's tunnels.
      this.logger.error({ msg: 'a frame of a tunnel could not be read', err: error });
      this.shut(1011, 'a frame could not be read');
    }
  }

  /** Answered here, not by ws: a peer that pings and does not read would fill our memory. */
  private onPing(data: Buffer): void {
    this.lives();
    if (this.bufferedBytes > UNREAD_BYTES_MAX) this.refuse(1008, 'answers are not read');
    else this.socket.pong(data);
  }

  /**
   * The published client listens for messages a moment after its socket is open, and loses those that came with the answer
   * to its handshake. Its first sign of life comes after that moment.
   */
  private whenReady(): Promise<void> {
    this.ping();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, READY_MS_MAX);
      this.onReady = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private lives(): void {
    this.unanswered = 0;
    this.onReady();
  }

  private blame(reason: string): void {
    this.fault ??= `The tunnel was closed because of what came through it: ${reason}.`;
  }

  private end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.onReady();
    this.channel.end();
    this.onEnd();
  }
}
