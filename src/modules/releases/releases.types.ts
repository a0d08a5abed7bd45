import type { SetupField } from '../oauth/setup/setup.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when the status or the log of a release changed. */
    'releases.changed': { id: string };
    /** Published when another release of a server became current. */
    'releases.current': ReleaseCurrent;
    /** Published when a rescan found changes of a server's tools, resources or prompts. */
    'releases.offers': OffersChanged;
    /** Published when a rescan was requested. */
    'releases.rescan': object;
  }
}

/** Payload of `releases.offers`. */
export interface OffersChanged {
  serverId: string;
}

/** Payload of `releases.current`. */
export interface ReleaseCurrent {
  serverId: string;
  slug: string;
  /** The current release. */
  releaseId: string;
}

/** Stored configuration values. Header names are lower-case. */
export interface StoredValues {
  headers: Record<string, string>;
  query: [name: string, value: string][];
}

/** A form field for one configuration value of a server. `fault` is that of the stored value. */
export interface RunFormField extends SetupField {
  place: 'headers' | 'query';
  /** The name of the header or query parameter. */
  name: string;
  /** The server cannot be called without it. */
  isMissing: boolean;
}

/** In the stored log of a release: the link where its owner authorizes the server. Only callers that get the link see it there. */
export const RELEASE_SETUP_PAGE = 'setupUrl of the release';

/** Returns a position in the log of a release, the `seq` of a line; the beginning of the log for an invalid position. */
export function toLogPosition(after: string | undefined): string {
  return after !== undefined && /^\d{1,18}$/.test(after) ? after : '0';
}
