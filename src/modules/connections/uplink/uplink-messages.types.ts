import type { ListenFilter } from '../../../mcp/protocol/channel.js';
import type { UpstreamIdentity } from '../../../mcp/protocol/protocol.js';

/** Head of a request to the process that holds a tunnel. Text of other parties is the body. */
export type UplinkRequest =
  | { kind: 'open'; timeoutMs: number }
  | {
      /** The body is the params, if there are any. */
      kind: 'request';
      timeoutMs: number;
      method: string;
      hasParams: boolean;
      wantsNotifications: boolean;
      /** Key of the caller's profile, if the caller can answer requests of the local server; else null. */
      profileKey: string | null;
    }
  /** The body is the ListenFilter. */
  | { kind: 'listen'; timeoutMs: number }
  /** The client's answer to a `client-request` message with this id. The body is the ClientAnswer. */
  | { kind: 'client-answer'; id: string };

/** One message of the answer. `text` is a message of the local server, unchanged. */
export type UplinkMessage =
  | { type: 'identity'; identity: UpstreamIdentity }
  | { type: 'notification'; method: string; text: string }
  | { type: 'client-request'; id: string; method: string; params: string | undefined }
  | { type: 'reply'; text: string }
  | { type: 'listening'; honoured: ListenFilter };
