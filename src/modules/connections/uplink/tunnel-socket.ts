import { isUtf8 } from 'node:buffer';
import { Logger } from '@nestjs/common';
import type { WebSocket } from 'ws';
import { UNREAD_BYTES_MAX, UplinkChannel, type FramePort } from '../../../mcp/client/uplink/uplink-channel.js';
import { MESSAGE_BYTES_MAX } from '../../../mcp/server/mcp-http-server.js';
import { boundExceeded } from '../../../platform/text/json-bounds.js';

/** Codes of RFC 6455 section 7.4.1 that Slipway sends. */
type CloseCode = 1001 | 1008 | 1011 | 1013;

/** Time for the other side to confirm a close frame; then the socket is terminated. */
const CLOSE_MS = 2_000;

/** Time after which a local server that does not respond to the first ping is treated as ready. */
const READY_MS_MAX = 1_000;

const MB = 1024 * 1024;

/** Maximum size of a frame. A smaller frame above the message limit fails its call, but the tunnel stays open. */
export const FRAME_BYTES_MAX = 4 * MESSAGE_BYTES_MAX;

export class TunnelSocket implements FramePort {
  readonly channel: UplinkChannel;
  readonly ready: Promise<void>;
  /** The peer's first violation of the protocol, as a message. */
  fault: string | null = null;
  private readonly logger = new Logger('uplink');
  private unansweredPings = 0;
  private onReady: () => void = () => undefined;
  private isEnded = false;

  /** @param onEnd called once, when nothing more is sent or received */
  constructor(
    private readonly socket: WebSocket,
    private readonly onEnd: () => void,
  ) {
    this.channel = new UplinkChannel(this);
    socket.on('message', (data, isBinary) => this.onFrame(data as Buffer, isBinary));
    socket.on('ping', (data: Buffer) => this.onPing(data));
    socket.on('pong', () => this.markAlive());
    // For an invalid frame (RFC 6455), ws closes the socket itself with the right code.
    socket.on('error', ({ message, code }: NodeJS.ErrnoException) =>
      this.recordFault(
        code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH' ? `a message of more than ${FRAME_BYTES_MAX / MB} MB` : message,
      ),
    );
    socket.once('close', () => this.endTunnel());
    // The published client loses messages that arrive just after its socket opens; its first pong comes later.
    this.ping();
    this.ready = new Promise((resolve) => {
      const timer = setTimeout(resolve, READY_MS_MAX);
      this.onReady = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  get bufferedBytes(): number {
    return this.socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(text);
  }

  refuse(reason: string): void {
    this.recordFault(reason);
    this.shut(1008, reason);
  }

  close(): void {
    this.shut(1001, 'closing');
  }

  /** Closes the socket. Running calls fail now, without waiting for the other side to close. */
  shut(code: CloseCode, reason: string): void {
    this.endTunnel();
    if (this.socket.readyState !== this.socket.OPEN) return;
    this.socket.close(code, reason);
    const timer = setTimeout(() => this.socket.terminate(), CLOSE_MS);
    this.socket.once('close', () => clearTimeout(timer));
  }

  /** Closes the tunnel if the other side is closing, which ws reports only after the TCP connection has closed. */
  endIfClosing(): void {
    if (this.socket.readyState !== this.socket.OPEN) this.endTunnel();
  }

  /** Disconnects a peer that did not respond to the last two pings. */
  ping(): void {
    if (this.socket.readyState !== this.socket.OPEN) return;
    if (this.unansweredPings >= 2) {
      this.socket.terminate();
      return;
    }
    this.unansweredPings += 1;
    this.socket.ping();
  }

  private onFrame(data: Buffer, isBinary: boolean): void {
    this.markAlive();
    if (isBinary && !isUtf8(data)) return this.logger.debug('a binary frame that is not text was ignored');
    const exceeded = data.length > MESSAGE_BYTES_MAX ? `more than ${MESSAGE_BYTES_MAX / MB} MB` : boundExceeded(data);
    if (exceeded !== null) return this.channel.rejectOversized(data.toString('utf8'), exceeded);
    try {
      this.channel.receive(data.toString('utf8'));
    } catch (error) {
      // An uncaught error would crash the process with all tunnels.
      this.logger.error({ msg: 'a frame of a tunnel could not be read', err: error });
      this.shut(1011, 'a frame could not be read');
    }
  }

  /** Responds to a ping instead of ws, whose pongs for a peer that does not read would fill the memory. */
  private onPing(data: Buffer): void {
    this.markAlive();
    if (this.bufferedBytes > UNREAD_BYTES_MAX) this.refuse('answers are not read');
    else this.socket.pong(data);
  }

  private markAlive(): void {
    this.unansweredPings = 0;
    this.onReady();
  }

  private recordFault(reason: string): void {
    this.fault ??= `The tunnel was closed because of what came through it: ${reason}.`;
  }

  private endTunnel(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.onReady();
    this.channel.handleClose(this.fault);
    this.onEnd();
  }
}
