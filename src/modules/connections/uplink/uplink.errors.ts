import { Serializable } from '../../../platform/internal-http/error-codec.js';

/** The process no longer holds the tunnel; nothing was sent to the local server. */
@Serializable()
export class TunnelMovedError extends Error {}
