import type { Egress } from '../../../platform/egress/egress.js';

/** Where HTTP requests to an upstream go out: the guarded way for what lies outside, another for what runs here. */
export type HttpDispatcher = Pick<Egress, 'dispatch' | 'lastConnect'>;
