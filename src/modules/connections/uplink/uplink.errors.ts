import { Serializable } from '../../../platform/internal-http/error-codec.js';

/** The tunnel has moved to another process; nothing was sent to the local server. */
@Serializable()
export class TunnelMovedError extends Error {}
