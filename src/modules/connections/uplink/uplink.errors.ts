import { Serializable } from '../../../platform/internal-http/error-codec.js';

/** The process does not hold the tunnel any more; nothing was sent to the local server. */
@Serializable()
export class TunnelMovedError extends Error {}
