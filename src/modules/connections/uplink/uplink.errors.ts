import { Serializable } from '../../../platform/internal-http/error-codec.js';

/** Nothing was sent to the local server. */
@Serializable()
export class TunnelMovedError extends Error {}
