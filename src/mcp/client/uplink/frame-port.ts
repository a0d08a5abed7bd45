/** A duplex pipe of whole messages to a peer, as a channel needs it; what carries it is not known here. */
export interface FramePort {
  /** Settles when the peer reads messages; what is sent before may be lost. Never rejects. */
  readonly ready: Promise<void>;
  /** Queues one message. Never throws; on a closed port it does nothing. */
  send(text: string): void;
  /** Bytes that wait for the peer to read them. */
  readonly bufferedBytes: number;
  /**
   * Ends the pipe because the peer broke the rules.
   *
   * @param code a WebSocket close code (RFC 6455 section 7.4.1): 1007 for what is no JSON, 1008 for everything else
   * @param reason at most 123 bytes of UTF-8
   */
  refuse(code: 1007 | 1008, reason: string): void;
  /** Ends the pipe in order. */
  close(): void;
}
