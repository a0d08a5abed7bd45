import type { CallerProfile, McpCall, McpReply } from '../protocol/channel.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** What a session hears outside of its calls. */
export interface SessionEars {
  /** A notification that belongs to no call. */
  onNotification(text: string, method: string): void;
  /** The session is gone, with everything that ran in it. */
  onLost(session: LegacySession): void;
}

/** A session with a server of 2025-11-25 or older. */
export interface LegacySession {
  readonly hello: UpstreamIdentity;
  /**
   * @param isRepeat the request was sent before, in a session that was gone: that is not possible twice
   * @throws UpstreamFailure, SessionLostError when the request did not run because the session is gone
   */
  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply>;
  /**
   * Has the server tell what happens outside of calls, if it does not already; false when it does not.
   *
   * @param onEnd the server tells no more
   */
  startListening(timeoutMs: number, onEnd: () => void): Promise<boolean>;
  stopListening(): void;
  /** Ends it here; upstream too, unless it is kept there for whoever comes back and not ended `forGood`. Never rejects. */
  end(forGood?: boolean): Promise<void>;
}

/** A session that was opened before anybody could say who hears it: its ears are changed when somebody can. */
export interface OpenedSession {
  session: LegacySession;
  ears: SessionEars;
}

/** Opens sessions of one transport, for one caller who can be asked, or for all who cannot. */
export type OpenSession = (profile: CallerProfile | undefined, ears: SessionEars) => Promise<LegacySession>;
